//! What pools bring along: labels, weights, daemons, minValues.

use model::{LabelKey, snapshot::DisruptionBudget};

use super::{plan_of, planned, story::Story};
use crate::{MinValuesPolicy, Options, Plan, situation};

fn label(plan: &Plan, key: &str) -> Option<String> {
    plan.launches[0].labels.get(key).map(ToString::to_string)
}

/// SC15.3.4
#[test]
fn a_label_of_the_pool_is_one_of_those_that_are_asked_for() {
    let asked = |values: &str| {
        plan_of(&format!(
            "catalog standard\npool default label:team=blue\npod web cpu=10m term=team:In:{values}"
        ))
    };
    assert_eq!(label(&asked("blue|red"), "team").as_deref(), Some("blue"));
    assert_eq!(asked("red").refusals.len(), 1);
}

/// SC15.3.18, SC15.3.19, SC15.3.20
#[test]
fn custom_requirements_become_labels() {
    let requirement = |text: &str| plan_of(&format!("catalog standard\npool default where={text}\npod web cpu=10m"));
    assert_eq!(label(&requirement("team:In:blue"), "team").as_deref(), Some("blue"));
    assert_ne!(label(&requirement("team:NotIn:blue"), "team").as_deref(), Some("blue"));
    let below: i64 = label(&requirement("rank:Lt:4"), "rank").unwrap().parse().unwrap();
    let above: i64 = label(&requirement("rank:Gt:4"), "rank").unwrap().parse().unwrap();
    assert!(below < 4 && above > 4);
    assert!(label(&requirement("team:Exists"), "team").is_some());
    assert_eq!(label(&requirement("team:DoesNotExist"), "team"), None);
    assert_eq!(
        label(&requirement("zone:NotIn:test-zone-1"), "topology.kubernetes.io/zone"),
        None
    );
    for key in ["kubernetes.io/x", "sub.kubernetes.io/x", "k8s.io/x", "node.k8s.io/x"] {
        let plan = plan_of(&format!(
            "catalog standard\npool default where={key}:In:blue\npod web cpu=10m select={key}:In:blue"
        ));
        assert_eq!(label(&plan, key).as_deref(), Some("blue"));
    }
}

/// SC15.18.1, SC15.18.2, SC15.18.3
#[test]
fn variety_is_kept_although_one_node_would_do() {
    let situation = |pool: &str| {
        format!(
            "type one cpu=1 memory=4Gi price=0.5 label:rank=3
             type two cpu=4 memory=4Gi price=1 label:rank=5
             pool default {pool}
             pod web cpu=900m count=2"
        )
    };
    let varied = |pool: &str| {
        let plan = plan_of(&situation(pool));
        (
            plan.launches.len(),
            plan.launches.iter().all(|launch| launch.instance_types.len() >= 2),
        )
    };
    for pool in [
        "where=type:Exists::2",
        "where=rank:Gt:2:2",
        "where=type:In:one|two:1 where=type:NotIn:three:2",
        "where=rank:Gt:2:1 where=rank:Lt:9:2",
        "where=type:Exists::1 where=type:In:one|two:2",
    ] {
        assert_eq!(varied(pool), (2, true), "{pool}");
    }
    for pool in ["where=rank:Lt:4:2", "where=rank:Gt:3:2"] {
        assert_eq!(plan_of(&situation(pool)).refusals.len(), 2, "{pool}");
    }
}

/// SC15.18.6, SC15.18.7
#[test]
fn every_label_keeps_its_variety() {
    let types = "type amd cpu=2 memory=4Gi price=0.1 zones=a,b
                 type arm cpu=2 memory=4Gi price=0.1 zones=a,b arch=arm64";
    let launched = |pool: &str| {
        let plan = plan_of(&format!("{types}\npool default {pool}\npod web cpu=900m"));
        plan.launches.first().map(|launch| launch.instance_types.len())
    };
    assert_eq!(launched("where=arch:In:amd64|arm64:2 where=type:Exists::1"), Some(2));
    assert_eq!(launched("where=type:In:amd|arm|third:3"), None);
    assert_eq!(launched("where=zone:In:a|b|c:3"), None);
}

/// SC15.18.8: the claim says what there is.
#[test]
fn best_effort_says_how_much_there_was() {
    let best_effort = Options {
        min_values_policy: MinValuesPolicy::BestEffort,
        ..Options::default()
    };
    let plan = planned(
        "type amd cpu=2 memory=4Gi price=0.1 zones=a,b
         type arm cpu=2 memory=4Gi price=0.1 zones=a,b arch=arm64
         pool default where=type:Exists::3 where=zone:In:a|b|c:3
         pod web cpu=900m",
        best_effort,
    );
    let launch = &plan.launches[0];
    let least = |key: &str| launch.requirements.requirement(key).unwrap().min_values;
    assert!(launch.min_values_relaxed);
    assert_eq!(least("node.kubernetes.io/instance-type"), Some(2));
    assert_eq!(least("topology.kubernetes.io/zone"), Some(2));
    assert_eq!(launch.requirements.get("topology.kubernetes.io/zone").len(), 3);
}

/// SC15.9.3, SC15.9.4, SC15.9.5, SC15.9.6: a solver is told the daemon's pod as it would be on a fresh node.
#[test]
fn daemons_count_with_what_their_pods_ask_for() {
    let bought = |daemon: &str| {
        let plan = plan_of(&format!(
            "catalog standard\npool default label:foo=bar\ndaemon logs {daemon}\npod web cpu=1 memory=1Gi"
        ));
        plan.launches
            .first()
            .map(|launch| launch.choice.instance_type.to_string())
    };
    assert_eq!(bought("").as_deref(), Some("small-instance-type"));
    assert_eq!(bought("cpu=2 memory=2Gi").as_deref(), Some("default-instance-type"));
    assert_eq!(
        bought("cpu=2 memory=2Gi term=foo:In:bar").as_deref(),
        Some("default-instance-type")
    );
    assert_eq!(
        bought("cpu=2 memory=2Gi term=foo:In:other").as_deref(),
        Some("small-instance-type")
    );
    assert_eq!(bought("cpu=10000"), None);
}

/// SC15.10.4
#[test]
fn what_pods_tolerate_is_no_taint_of_their_node() {
    let mut story = Story::new("catalog standard\npool default");
    story.provision("pod web cpu=10m tolerates=gpu");
    let plan = story.provision("pod other cpu=10m");
    assert!(plan.fits_existing(), "{plan}");
}

/// SC15.10.8, SC15.11.8: until the node says that it is ready, what its claim says fills the gaps.
#[test]
fn a_starting_node_is_what_its_claim_says() {
    let plan = plan_of(
        "catalog standard
         pool default
         node n1 pool=default cpu=4 memory=4Gi has:fake.com/vendor-a=2 booting taints=node.kubernetes.io/not-ready:NoExecute
         pod web cpu=10m has:fake.com/vendor-a=1",
    );
    assert!(plan.fits_existing(), "{plan}");
    let mut story = Story::new(
        "catalog standard
         pool default
         node n1 pool=default cpu=4 memory=4Gi has:fake.com/vendor-a=2 booting",
    );
    let mut machine = (**story.snapshot.nodes.values().next().unwrap()).clone();
    let node = machine.node.as_mut().unwrap();
    node.allocatable.set("fake.com/vendor-a".into(), model::Quantity::ZERO);
    story.snapshot.put_node(std::sync::Arc::new(machine));
    let plan = story.plan("pod web cpu=10m has:fake.com/vendor-a=1");
    assert!(plan.fits_existing(), "{plan}");
}

/// SC15.12.2, SC15.12.3, SC15.12.4, SC15.12.5: which pods of a node that goes need another place.
#[test]
fn pods_that_cannot_move_get_no_replacement() {
    let moved = |words: &str| {
        let (mut snapshot, _) = situation::parse(&format!(
            "catalog standard
             pool default
             node n1 pool=default cpu=4 memory=4Gi leaving
             pod web cpu=1 on=n1 label:app=web {words}"
        ));
        let budgets = words
            .split_whitespace()
            .filter_map(|word| word.strip_prefix("budget="))
            .enumerate();
        for (number, blocking) in budgets {
            let key = model::PodKey::new("default", &format!("b{number}"));
            let budget = DisruptionBudget {
                key: key.clone(),
                selector: Some(model::pod::LabelSelector {
                    requirements: Vec::new(),
                }),
                disruptions_allowed: 0,
                fully_blocking: blocking == "blocking",
                unhealthy_always_allowed: false,
            };
            snapshot.budgets.insert(key, std::sync::Arc::new(budget));
        }
        let pods = snapshot.pods_to_place(situation::now());
        let plan = crate::solve(&snapshot, &crate::Round::new(pods, situation::now()));
        plan.launches.len()
    };
    for (words, expected) in [
        ("", 1),
        ("terminating", 0),
        ("terminating stateful", 1),
        ("daemon", 0),
        ("budget=blocking", 0),
        ("budget=open", 1),
        ("budget=open budget=open", 0),
        ("protected", 0),
        ("protected-for=1h", 0),
        ("protected-for=-1h", 1),
    ] {
        assert_eq!(moved(words), expected, "{words}");
    }
}

/// SC15.13.1
#[test]
fn ports_clash_by_number_protocol_and_address() {
    let nodes = |left: &str, right: &str| {
        plan_of(&format!(
            "catalog standard\npool default\npod l cpu=10m port={left}\npod r cpu=10m port={right}"
        ))
        .launches
        .len()
    };
    assert_eq!(nodes("80", "80"), 2);
    assert_eq!(nodes("80", "81"), 1);
    assert_eq!(nodes("80/UDP", "80"), 1);
    assert_eq!(nodes("80@10.0.0.1", "80@10.0.0.2"), 1);
    assert_eq!(nodes("80@10.0.0.1", "80@10.0.0.1"), 2);
    assert_eq!(nodes("80@10.0.0.1", "80"), 2);
    assert_eq!(nodes("80@10.0.0.1", "80@::"), 2);
}

/// SC15.19.1: a pool is chosen by its name or its labels, whatever the weights.
#[test]
fn a_pool_that_is_asked_for_is_used() {
    for choice in ["select=pool:In:light", "select=team:In:blue"] {
        let plan = plan_of(&format!(
            "catalog standard\npool heavy weight=100 label:team=red\npool light label:team=blue\npod web cpu=10m {choice}"
        ));
        assert_eq!(plan.launches[0].pool.as_str(), "light", "{choice}");
    }
}

/// SC15.22.2, SC15.22.4 as a solver sees them: virtual pods are pods that wait, and fit what is there or do not.
#[test]
fn virtual_pods_are_placed_like_others() {
    let mut story = Story::new("catalog standard\npool default\nnode n1 pool=default cpu=4 memory=4Gi");
    let buffer = "pod capacity-buffer-x cpu=1 label:app=buffer";
    assert!(story.plan(&format!("{buffer} count=4")).fits_existing());
    let plan = story.plan(&format!("{buffer} count=6"));
    assert_eq!((plan.launches.len(), plan.refusals.len()), (1, 0), "{plan}");
}

/// SC15.24.1, SC15.24.2 as a solver sees them: prices and capacities are those of the pool's own catalogue.
#[test]
fn each_pool_has_its_own_prices() {
    let plan = plan_of(
        "type cheap cpu=2 memory=4Gi price=0.1 only=one
         type dear cpu=2 memory=4Gi price=0.2 only=one
         type cheap cpu=2 memory=4Gi price=0.3 has:example.com/device=1 only=two
         type dear cpu=2 memory=4Gi price=0.2 only=two
         pool one
         pool two
         pod first cpu=2 select=pool:In:one
         pod second cpu=2 select=pool:In:two
         pod third cpu=2 has:example.com/device=1",
    );
    let bought = |pod: &str| {
        let launch = plan
            .launches
            .iter()
            .find(|launch| &*launch.pods[0].name == pod)
            .unwrap();
        format!("{}/{}", launch.pool, launch.choice.instance_type)
    };
    assert_eq!(
        [bought("first"), bought("second"), bought("third")],
        ["one/cheap", "two/dear", "two/cheap"]
    );
    let key: LabelKey = "karpenter.sh/nodepool".into();
    assert!(plan.launches.iter().all(|launch| launch.labels.contains_key(&key)));
}
