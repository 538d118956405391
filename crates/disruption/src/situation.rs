//! Situations in a few words, for check tables.
//!
//! ```text
//! pool general  after=30s  budgets=10%,Empty:1   (after=never, static, broken-budget)
//! node n1       pool=general  price=2  consolidatable   (nominated, leaving, down, protected, young, unjoined, grace)
//! pod  web      on=n1  protected                 (daemon, finished, worthless)
//! pdb  budget   covers=web  allows=0
//! ```

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use model::{
    CapacityType, Claim, ClaimPhase, InstanceType, Labels, NodeFacts, NodeKey, Operator, Overhead, Pod, PodKey, Pool,
    Requirement, Requirements, Resources, Snapshot, StateNode,
    budget::{Budget, DisruptionReason},
    pod::{DoNotDisrupt, LabelSelector, PodOwner, PodPhase, PodShape},
    pool::Disruption,
    samples,
    snapshot::DisruptionBudget,
    vocabulary,
};

pub(crate) fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("a moment")
}

pub(crate) fn parse(situation: &str) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut prices: BTreeMap<String, f64> = BTreeMap::new();
    for line in situation.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let (kind, name) = (words.next().expect("a kind"), words.next().expect("a name"));
        let facts = Facts(words.map(|word| word.split_once('=').unwrap_or((word, ""))).collect());
        match kind {
            "pool" => {
                snapshot.pools.insert(name.into(), Arc::new(pool(name, &facts)));
            }
            "node" => {
                prices.insert(
                    name.to_owned(),
                    facts.get("price").map_or(1.0, |price| price.parse().expect("a price")),
                );
                snapshot.put_node(Arc::new(node(name, &facts)));
            }
            "pod" => snapshot.put_pod(Arc::new(pod(name, &facts))),
            "pdb" => {
                let budget = disruption_budget(name, &facts);
                snapshot.budgets.insert(budget.key.clone(), Arc::new(budget));
            }
            other => panic!("{other} is not part of a situation"),
        }
    }
    let types: Vec<_> = prices
        .iter()
        .map(|(name, price)| Arc::new(instance_type(name, *price)))
        .collect();
    for pool in snapshot.pools.keys().cloned().collect::<Vec<_>>() {
        snapshot.catalogs.insert(pool, types.clone().into());
    }
    snapshot
}

struct Facts<'a>(BTreeMap<&'a str, &'a str>);

impl Facts<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).copied()
    }

    fn says(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect()
}

fn pool(name: &str, facts: &Facts<'_>) -> Pool {
    let budget = |text: &str| match text.split_once(':') {
        None => Budget::always(text.parse().expect("a share")),
        Some((reason, nodes)) => {
            let reason: DisruptionReason = reason.parse().expect("a reason");
            Budget {
                reasons: Some([reason].into()),
                ..Budget::always(nodes.parse().expect("a share"))
            }
        }
    };
    let budgets = facts
        .get("budgets")
        .map_or_else(Vec::new, |list| list.split(',').map(budget).collect());
    Pool {
        disruption: Disruption {
            consolidate_after: (facts.get("after") != Some("never")).then_some(SignedDuration::ZERO),
            budgets: if facts.says("broken-budget") {
                Err("no such day".to_owned())
            } else {
                Ok(budgets)
            },
            ..samples::pool(name).disruption
        },
        replicas: facts.says("static").then_some(1),
        ..samples::pool(name)
    }
}

fn node(name: &str, facts: &Facts<'_>) -> StateNode {
    let mut on_node = labels(&[
        (vocabulary::INSTANCE_TYPE, name),
        (vocabulary::ZONE, "a"),
        (vocabulary::CAPACITY_TYPE, "on-demand"),
        (vocabulary::REGISTERED, "true"),
    ]);
    if let Some(pool) = facts.get("pool") {
        on_node.insert(vocabulary::NODEPOOL.into(), pool.into());
    }
    if !facts.says("young") {
        on_node.insert(vocabulary::INITIALIZED.into(), "true".into());
    }
    let protection: &[_] = if facts.says("protected") {
        &[("karpenter.sh/do-not-disrupt", "true")]
    } else {
        &[]
    };
    let claim = Claim {
        pool: facts.get("pool").map(Into::into),
        phase: ClaimPhase::Initialized,
        labels: on_node.clone(),
        deleting: facts.says("leaving").then(now),
        termination_grace: facts.says("grace").then_some(SignedDuration::from_mins(5)),
        consolidatable: facts.says("consolidatable"),
        ..samples::claim(name)
    };
    let half = NodeFacts {
        labels: on_node,
        annotations: labels(protection),
        ready: !facts.says("down"),
        ..samples::node(name)
    };
    StateNode {
        key: NodeKey::Claim(name.into()),
        claim: Some(claim),
        node: (!facts.says("unjoined")).then_some(half),
        nominated_until: facts.says("nominated").then(|| now() + SignedDuration::from_secs(20)),
        marked_for_deletion: false,
    }
}

fn pod(name: &str, facts: &Facts<'_>) -> Pod {
    let shape = PodShape {
        labels: labels(&[("app", name)]),
        priority: if facts.says("worthless") { i32::MIN } else { 0 },
        ..samples::pod_shape()
    };
    Pod {
        shape: Arc::new(shape),
        owner: if facts.says("daemon") {
            PodOwner::DaemonSet
        } else {
            PodOwner::Other
        },
        phase: if facts.says("finished") {
            PodPhase::Succeeded
        } else {
            PodPhase::Running
        },
        ready: !facts.says("unready"),
        node: facts.get("on").map(Into::into),
        do_not_disrupt: facts.says("protected").then_some(DoNotDisrupt::Always),
        ..samples::pod(name)
    }
}

fn disruption_budget(name: &str, facts: &Facts<'_>) -> DisruptionBudget {
    let covered = facts.get("covers").expect("a pod to cover");
    DisruptionBudget {
        key: PodKey::new("default", name),
        selector: Some(LabelSelector {
            requirements: vec![Requirement::new("app", Operator::In, [covered.into()]).expect("a selector")],
        }),
        disruptions_allowed: facts.get("allows").map_or(0, |count| count.parse().expect("a number")),
        fully_blocking: false,
        unhealthy_always_allowed: facts.says("lenient"),
    }
}

fn instance_type(name: &str, price: f64) -> InstanceType {
    let offering = samples::offering(CapacityType::OnDemand, "a", price);
    InstanceType::new(
        name.into(),
        Requirements::default(),
        vec![offering],
        Resources::default(),
        Overhead::default(),
    )
}
