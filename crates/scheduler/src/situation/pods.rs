//! `pod` and `daemon` lines.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::SignedDuration;
use model::{
    Pod, PodKey, Quantity, Requirement, ResourceName, Toleration,
    pod::{
        Affinity, DoNotDisrupt, HostPort, LabelSelector, NodeTerm, PodClaim, PodClaimSource, PodOwner, PodPhase,
        PodShape, PodTerm, PodVolume, TopologySpread,
    },
    requirement::Values,
};

use super::{Line, full_key, now, requirement};

pub(super) fn shape(line: &Line<'_>) -> PodShape {
    let mut requests = line.resources();
    requests.set(ResourceName::PODS, Quantity::from_int(1));
    let toleration = |text: &str| {
        let (key, effect) = text
            .split_once(':')
            .map_or((text, None), |(key, effect)| (key, effect.parse().ok()));
        Toleration {
            effect,
            ..Toleration::of_key(key)
        }
    };
    PodShape {
        labels: line.labels(),
        requests,
        node_selector: line.all("select").map(requirement).collect(),
        affinity: Affinity {
            required_nodes: line.all("term").map(node_term).collect(),
            preferred_nodes: line.all("prefer").map(node_term).collect(),
            required_pods: line.all("near").map(pod_term).collect(),
            preferred_pods: line.all("wish-near").map(pod_term).collect(),
            required_anti: line.all("apart").map(pod_term).collect(),
            preferred_anti: line.all("wish-apart").map(pod_term).collect(),
        },
        spreads: line.all("spread").map(spread).collect(),
        tolerations: line.list("tolerates").into_iter().map(toleration).collect(),
        host_ports: line.list("port").into_iter().map(port).collect(),
        volumes: line
            .words
            .iter()
            .filter_map(|(word, name)| volume(word, name))
            .collect(),
        priority: 0,
        priority_class: None,
        scheduler_name: "default-scheduler".into(),
        resource_claims: line.all("device").map(pod_claim).collect(),
        containers_claim: false,
        termination_grace: SignedDuration::from_secs(30),
    }
}

fn pod_claim(name: &str) -> PodClaim {
    PodClaim {
        name: name.to_owned(),
        source: PodClaimSource::Claim(name.to_owned()),
    }
}

/// `port/protocol@address`
fn port(text: &str) -> HostPort {
    let (text, ip) = text.split_once('@').unwrap_or((text, "0.0.0.0"));
    let (port, protocol) = text.split_once('/').unwrap_or((text, "TCP"));
    HostPort {
        ip: ip.into(),
        port: port.parse().unwrap(),
        protocol: protocol.into(),
    }
}

/// `weight*expression&expression`
fn node_term(text: &str) -> NodeTerm {
    let (weight, text) = weighed(text);
    NodeTerm {
        weight,
        requirements: text.split('&').map(requirement).collect(),
    }
}

fn weighed(text: &str) -> (i32, &str) {
    match text.split_once('*') {
        Some((weight, rest)) => (weight.parse().unwrap_or_else(|_| panic!("{weight} is no weight")), rest),
        None => (0, text),
    }
}

/// `label=value` asks for the label, `nobody` for nothing that exists; without either, everybody is selected.
fn selector<'t>(options: &[&'t str]) -> (Option<LabelSelector>, Vec<&'t str>) {
    let (labels, rest): (Vec<&str>, Vec<&str>) = options.iter().partition(|option| option.contains('='));
    let wanted = labels.iter().filter_map(|label| label.split_once('='));
    let requirements =
        wanted.map(|(key, value)| Requirement::of(key, Values::Only(value.split('|').map(Into::into).collect())));
    let selector = LabelSelector {
        requirements: requirements.collect(),
    };
    let nobody = rest.contains(&"nobody");
    let rest = rest.into_iter().filter(|option| *option != "nobody").collect();
    ((!nobody).then_some(selector), rest)
}

/// `weight*key:label=value:in-one|two:in-any:in-team~blue`
fn pod_term(text: &str) -> PodTerm {
    let (weight, text) = weighed(text);
    let mut options: Vec<&str> = text.split(':').collect();
    let key = options.remove(0);
    let (selector, rest) = selector(&options);
    let mut term = PodTerm {
        topology_key: full_key(key).to_owned(),
        selector,
        namespaces: BTreeSet::new(),
        namespace_selector: None,
        match_label_keys: Vec::new(),
        mismatch_label_keys: Vec::new(),
        weight,
    };
    for option in rest {
        let namespaces = option
            .strip_prefix("in-")
            .unwrap_or_else(|| panic!("{option} of {text} means nothing"));
        match namespaces.split_once('~') {
            _ if namespaces == "any" => {
                term.namespace_selector = Some(LabelSelector {
                    requirements: Vec::new(),
                });
            }
            Some((key, value)) => {
                let requirements = vec![Requirement::of(key, Values::Only([value.into()].into()))];
                term.namespace_selector = Some(LabelSelector { requirements });
            }
            None => term.namespaces.extend(namespaces.split('|').map(ToOwned::to_owned)),
        }
    }
    term
}

/// `key:skew:minN:label=value:like-label:anyway:any-node:heed-taints`
fn spread(text: &str) -> TopologySpread {
    let mut options: Vec<&str> = text.split(':').collect();
    let key = options.remove(0);
    let (selector, rest) = selector(&options);
    let mut spread = TopologySpread {
        topology_key: full_key(key).to_owned(),
        max_skew: 1,
        min_domains: None,
        required: true,
        selector,
        match_label_keys: Vec::new(),
        honor_affinity: true,
        honor_taints: false,
    };
    for option in rest {
        if let Ok(skew) = option.parse() {
            spread.max_skew = skew;
        } else if let Some(least) = option.strip_prefix("min") {
            spread.min_domains = Some(least.parse().unwrap());
        } else if let Some(label) = option.strip_prefix("like-") {
            spread.match_label_keys.push(label.to_owned());
        } else {
            match option {
                "anyway" => spread.required = false,
                "any-node" => spread.honor_affinity = false,
                "heed-taints" => spread.honor_taints = true,
                other => panic!("{other} of {text} means nothing"),
            }
        }
    }
    spread
}

fn volume(word: &str, name: &str) -> Option<PodVolume> {
    match word {
        "volume" => Some(PodVolume::Claim(name.to_owned())),
        "scratch" => Some(PodVolume::Ephemeral {
            volume: name.to_owned(),
            storage_class: None,
        }),
        _ => None,
    }
}

/// `protected`, or `protected-for` some time from the start.
fn protection(line: &Line<'_>) -> Option<DoNotDisrupt> {
    let time = line
        .get("protected-for")
        .map(|time| DoNotDisrupt::For(time.parse().unwrap()));
    time.or_else(|| line.has("protected").then_some(DoNotDisrupt::Always))
}

pub(super) fn pods(line: &Line<'_>) -> Vec<Pod> {
    let shape = Arc::new(shape(line));
    let namespace = line.get("in").unwrap_or("default");
    let names: BTreeMap<usize, String> = match line.get("count").map(|count| count.parse::<usize>().unwrap()) {
        None => BTreeMap::from([(0, line.name.to_owned())]),
        Some(count) => (1..=count)
            .map(|number| (number, format!("{}-{number}", line.name)))
            .collect(),
    };
    let age = |number: usize| SignedDuration::from_secs(i64::try_from(number).unwrap());
    let pod = |(number, name): (usize, String)| Pod {
        key: PodKey::new(namespace, &name),
        uid: name.as_str().into(),
        shape: shape.clone(),
        owner: if line.has("daemon") {
            PodOwner::DaemonSet
        } else if line.has("stateful") {
            PodOwner::StatefulSet
        } else {
            PodOwner::Other
        },
        controller: line
            .get("owner")
            .map(|owner| super::workloads::controller(namespace, owner)),
        phase: if line.has("done") {
            PodPhase::Succeeded
        } else if line.has("failed") {
            PodPhase::Failed
        } else {
            PodPhase::Pending
        },
        ready: false,
        node: line.get("on").map(Into::into),
        nominated_node: None,
        created: now() + age(number),
        started: Some(now()),
        deletion: line.has("terminating").then(now),
        unschedulable: !line.has("on"),
        scheduling_gated: false,
        do_not_disrupt: protection(line),
        deletion_cost: 0.0,
        generated_claims: BTreeMap::new(),
    };
    names.into_iter().map(pod).collect()
}
