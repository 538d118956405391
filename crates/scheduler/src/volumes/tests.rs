//! Rows SC15.14.* as far as they are about what a pod's volumes mean; where the pod goes with them is the solver's.

use std::sync::Arc;

use expect_test::{Expect, expect};
use model::{
    Snapshot, StorageClass, Vocabulary,
    requirement::SelectorRequirement,
    volume::{EBS_DRIVER, driver_of_provisioner},
};

use super::*;
use crate::situation::{now, parse};

/// A line per object, in the manner of situations, for what hangs below the pod `pod`.
///
/// ```text
/// class  fast  csi.a wait|immediate default=5 zone=a,b | zone=c
/// volume v1    csi.a|- gone local zone=a | host=n1
/// claim  data  class=fast volume=v1 bound gone lost
/// use    data
/// own    scratch
/// ```
fn storage(text: &str) -> (Snapshot, Arc<model::Pod>) {
    let (mut snapshot, _) = parse("pod pod cpu=1");
    let mut uses = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let (kind, name) = (words.next().unwrap(), words.next().unwrap());
        let rest: Vec<&str> = words.collect();
        let has = |word: &str| rest.contains(&word);
        let value = |key: &str| rest.iter().find_map(|word| word.strip_prefix(key)).map(Arc::from);
        match kind {
            "class" => {
                let class = StorageClass {
                    name: name.into(),
                    driver: driver_of_provisioner(rest[0]).into(),
                    binding: if has("immediate") {
                        BindingMode::Immediate
                    } else {
                        BindingMode::WaitForFirstConsumer
                    },
                    allowed_topologies: terms(&rest[1..]),
                    is_default: value("default=").is_some(),
                    created: now() + seconds(value("default=").as_deref().unwrap_or("0")),
                };
                snapshot.storage_classes.insert(name.into(), Arc::new(class));
            }
            "volume" => {
                let volume = Volume {
                    name: name.into(),
                    deleting: has("gone"),
                    driver: (rest[0] != "-").then(|| rest[0].into()),
                    machine_bound: has("local"),
                    node_terms: terms(&rest[1..]),
                };
                snapshot.volumes.insert(name.into(), Arc::new(volume));
            }
            "claim" => {
                let claim = VolumeClaim {
                    key: PodKey::new("default", name),
                    volume: value("volume="),
                    storage_class: value("class="),
                    bind_completed: has("bound"),
                    deleting: has("gone"),
                    lost: has("lost"),
                };
                snapshot.volume_claims.insert(claim.key.clone(), Arc::new(claim));
            }
            "use" => uses.push(PodVolume::Claim(name.to_owned())),
            "own" => uses.push(PodVolume::Ephemeral {
                volume: name.to_owned(),
                storage_class: None,
            }),
            other => panic!("{other} is not a line of storage"),
        }
    }
    let mut pod = (**snapshot.pods.values().next().unwrap()).clone();
    Arc::make_mut(&mut pod.shape).volumes = uses;
    (snapshot, Arc::new(pod))
}

fn seconds(text: &str) -> jiff::SignedDuration {
    jiff::SignedDuration::from_secs(text.parse().unwrap())
}

/// `zone=a,b host=n1 | zone=c`: two terms.
fn terms(words: &[&str]) -> Vec<Vec<Requirement>> {
    let requirement = |word: &str| {
        let (key, values) = word.split_once('=')?;
        let key = match key {
            "zone" => vocabulary::ZONE,
            "host" => vocabulary::HOSTNAME,
            "default" => return None,
            other => other,
        };
        let written = SelectorRequirement {
            key: key.into(),
            operator: model::Operator::In,
            values: values.split(',').map(Into::into).collect(),
            min_values: None,
        };
        Some(Requirement::try_from(&written).unwrap())
    };
    let terms: Vec<Vec<Requirement>> = words
        .split(|word| *word == "|")
        .map(|term| term.iter().filter_map(|word| requirement(word)).collect())
        .collect();
    if terms.iter().all(Vec::is_empty) {
        Vec::new()
    } else {
        terms
    }
}

#[track_caller]
fn check(text: &str, expected: Expect) {
    let (snapshot, pod) = storage(text);
    expected.assert_eq(&rendered(&snapshot, &pod));
}

fn rendered(snapshot: &Snapshot, pod: &model::Pod) -> String {
    match resolve(snapshot, pod) {
        Err(reason) => format!("refused: {reason}\n"),
        Ok(volumes) => {
            let or = volumes.alternatives.iter().map(|place| match place.to_string() {
                text if text.is_empty() && place.is_empty() => "anywhere\n".to_owned(),
                text if text.is_empty() => "one host\n".to_owned(),
                text => format!("{text}\n"),
            });
            let attached = volumes
                .attached
                .iter()
                .map(|(driver, claim)| format!("{driver}: {claim}\n"));
            or.chain(attached).collect()
        }
    }
}

#[test]
fn a_claim_that_leads_nowhere_makes_the_pod_wait() {
    // SC15.14.1
    check(
        "use data",
        expect![[r#"
        refused: volume claim default/data is not there
    "#]],
    );
    check(
        "own scratch",
        expect![[r#"
        refused: volume claim default/pod-scratch is not there
    "#]],
    );
    check(
        "claim data class=fast
           use data",
        expect![[r#"
        refused: storage class fast of volume claim default/data is not there
    "#]],
    );
    check(
        "claim data class=fast volume=v1 bound
           use data",
        expect![[r#"
        refused: volume v1 of claim default/data is not there
    "#]],
    );
}

#[test]
fn a_bound_claim_needs_no_class_and_an_unbound_one_does() {
    // SC15.14.2
    check(
        "volume v1 csi.a
           claim data volume=v1 bound
           use data",
        expect![[r#"
        csi.a: default/data
    "#]],
    );
    check(
        "volume v1 csi.a
           claim data class= volume=v1 bound
           use data",
        expect![[r#"
        csi.a: default/data
    "#]],
    );
    check(
        "claim data
           use data",
        expect![[r#"
        refused: volume claim default/data has no volume and no storage class
    "#]],
    );
    check(
        "class fast csi.a default=1
           claim data class=
           use data",
        expect![[r#"
        refused: volume claim default/data has no volume and no storage class
    "#]],
    );
}

#[test]
fn a_class_says_where_its_volumes_can_be() {
    // SC15.14.3, SC15.14.7
    let expected = expect![[r#"
        topology.kubernetes.io/zone In [b c]
        csi.a: default/data
    "#]];
    check(
        "class fast csi.a zone=b,c
           claim data class=fast
           use data",
        expected,
    );
    check(
        "class fast csi.a zone=a | zone=b
           claim pod-scratch class=fast
           own scratch",
        expect![[r#"
        topology.kubernetes.io/zone In [a]
        topology.kubernetes.io/zone In [b]
        csi.a: default/pod-scratch
    "#]],
    );
}

#[test]
fn a_bound_volume_says_where_it_is() {
    // SC15.14.4, SC15.14.7
    check(
        "volume v1 csi.a zone=a | zone=b
           claim data volume=v1 bound
           use data",
        expect![[r#"
        topology.kubernetes.io/zone In [a]
        topology.kubernetes.io/zone In [b]
        csi.a: default/data
    "#]],
    );
}

#[test]
fn the_host_of_a_local_volume_is_no_demand() {
    // SC15.14.5, SC15.14.6
    check(
        "volume v1 - local host=n1
           claim data volume=v1 bound
           use data",
        expect![[r#"
        anywhere
    "#]],
    );
    check(
        "volume v1 - local host=n1 | zone=nowhere
           claim pod-scratch volume=v1 bound
           own scratch",
        expect![[r#"
        anywhere
        topology.kubernetes.io/zone In [nowhere]
    "#]],
    );
    check(
        "volume v1 csi.a host=n1
           claim data volume=v1 bound
           use data",
        expect![[r#"
        one host
        csi.a: default/data
    "#]],
    );
}

#[test]
fn volumes_are_combined_where_they_agree() {
    // SC15.14.8
    check(
        "volume v1 csi.a zone=a | zone=b
           volume v2 csi.a zone=b | zone=c
           claim one volume=v1 bound
           claim two volume=v2 bound
           use one
           use two
           use one",
        expect![[r#"
        topology.kubernetes.io/zone In [b]
        csi.a: default/one
        csi.a: default/two
    "#]],
    );
    check(
        "volume v1 csi.a zone=a
           volume v2 csi.b zone=b
           volume v3 csi.b zone=a
           claim one volume=v1 bound
           claim two volume=v2 bound
           claim three volume=v3 bound
           use one
           use two
           use three",
        expect![[r#"
        topology.kubernetes.io/zone DoesNotExist
        csi.a: default/one
        csi.b: default/three
        csi.b: default/two
    "#]],
    );
}

#[test]
fn a_multitude_of_combinations_is_refused() {
    let mut text = String::new();
    for number in 0..40 {
        text += &format!("volume v{number} - key{number}=a | key{number}=b\n");
        text += &format!("claim c{number} volume=v{number} bound\nuse c{number}\n");
    }
    check(
        &text,
        expect![[r#"
        refused: the places of its volumes can be combined in more than 1024 ways
    "#]],
    );
}

#[test]
fn a_claim_without_a_class_gets_the_newest_default() {
    // SC15.14.10
    check(
        "class old csi.old default=1
           class new csi.new default=2
           class other csi.other
           claim pod-scratch
           own scratch",
        expect![[r#"
        csi.new: default/pod-scratch
    "#]],
    );
    check(
        "class named csi.named
           class new csi.new default=2
           claim pod-scratch class=named
           own scratch",
        expect![[r#"
        csi.named: default/pod-scratch
    "#]],
    );
}

#[test]
fn a_class_of_the_built_in_plugin_counts_for_its_driver() {
    // SC15.14.11
    check(
        "class fast kubernetes.io/aws-ebs
           claim data class=fast
           use data",
        expect![[r#"
        ebs.csi.aws.com: default/data
    "#]],
    );
    assert_eq!(EBS_DRIVER, "ebs.csi.aws.com");
}

#[test]
fn what_the_provider_does_not_support_makes_the_pod_wait() {
    // SC15.14.12
    let check = |text: &str, expected: Expect| {
        let (mut snapshot, pod) = storage(text);
        snapshot.vocabulary = Arc::new(Vocabulary {
            unsupported_provisioners: ["csi.bad".to_owned()].into(),
            unsupported_topology_keys: ["rack".to_owned()].into(),
            ..Vocabulary::core()
        });
        expected.assert_eq(&rendered(&snapshot, &pod));
    };
    check(
        "class fast csi.bad
           claim data class=fast
           use data",
        expect![[r#"
        refused: volume claim default/data uses csi.bad, which the provider does not support
    "#]],
    );
    check(
        "volume v1 csi.bad
           claim data volume=v1 bound
           use data",
        expect![[r#"
        refused: volume claim default/data uses csi.bad, which the provider does not support
    "#]],
    );
    check(
        "class fast csi.a zone=a rack=1
           claim data class=fast
           use data",
        expect![[r#"
        refused: storage class fast of volume claim default/data is tied to rack, which the provider does not support
    "#]],
    );
}

#[test]
fn storage_that_is_not_there_yet_or_any_more_makes_the_pod_wait() {
    // SC15.14.13, SC15.14.14
    check(
        "class fast csi.a immediate
           claim data class=fast
           use data",
        expect![[r#"
        refused: volume claim default/data is not bound, and storage class fast binds immediately
    "#]],
    );
    check(
        "class fast csi.a
           claim data class=fast gone
           use data",
        expect![[r#"
        refused: volume claim default/data is being deleted
    "#]],
    );
    check(
        "class fast csi.a
           claim data class=fast lost
           use data",
        expect![[r#"
        refused: volume claim default/data has lost its volume
    "#]],
    );
    check(
        "volume v1 csi.a gone
           claim data volume=v1 bound
           use data",
        expect![[r#"
        refused: volume v1 of claim default/data is being deleted
    "#]],
    );
    check(
        "volume v1 csi.a
           claim data volume=v1
           use data",
        expect![[r#"
        refused: volume claim default/data is not bound to volume v1 yet
    "#]],
    );
}

#[test]
fn a_claim_that_many_pods_of_a_node_share_is_attached_once() {
    // SC15.14.9, SC15.14.11
    let (mut snapshot, _) = storage(
        "volume v1 csi.a
         volume v2 -
         class fast kubernetes.io/aws-ebs
         claim shared volume=v1 bound
         claim nfs volume=v2 bound
         claim fresh class=fast",
    );
    let (cluster, _) = parse(
        "node n1 cpu=8 memory=8Gi
         pod a cpu=1 on=n1 volume=shared
         pod b cpu=1 on=n1 volume=shared volume=nfs volume=fresh volume=missing
         pod c cpu=1 on=n1 volume=shared done
         pod d cpu=1 on=n2 volume=fresh",
    );
    for pod in cluster.pods.values() {
        snapshot.put_pod(pod.clone());
    }
    let machine = cluster.nodes.values().next().unwrap();
    let attached = attached_on(&snapshot, machine);
    let counts: Vec<(&str, usize)> = attached
        .iter()
        .map(|(driver, claims)| (&**driver, claims.len()))
        .collect();
    assert_eq!(counts, [("csi.a", 1), ("ebs.csi.aws.com", 1)]);
}
