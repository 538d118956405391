//! Situations in words: a line per pool, instance type, node, daemon and pod becomes a snapshot and a round.
//!
//! ```text
//! type  large  cpu=4 memory=16Gi zones=a,b sell=spot,on-demand price=0.2 soldout=a/spot label:size=large
//! pool  batch  weight=10 limit:cpu=8 zones=a where=arch:In:amd64|arm64:2 taints=gpu:NoSchedule startup=boot:NoSchedule
//! node  n1     cpu=4 memory=8Gi pool=batch type=large zone=a taints=gpu:NoSchedule label:team=blue booting
//! claim c1     pool=batch types=large,small zones=a
//! daemon logs  cpu=100m
//! pod   web    cpu=1 count=3 select=zone:In:a term=arch:In:amd64 tolerates=gpu port=8080 on=n1 again
//! ```
//!
//! Keys may be written short: `zone`, `arch`, `os`, `type`, `capacity`, `pool`, `host`. Every pool is offered every type.

mod machines;
mod pods;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use model::{
    CapacityType, Effect, InstanceType, LabelKey, LabelValue, Labels, Offering, Overhead, PodKey, Pool, Quantity,
    Requirement, Requirements, ResourceName, Resources, Snapshot, Taint,
    budget::{Budget, NodeShare},
    node::NodeClassRef,
    pool::{ConsolidationPolicy, Disruption, Template},
    requirement::SelectorRequirement,
    snapshot::Daemon,
    vocabulary,
};

use crate::round::Round;

pub(crate) use machines::claim_of;

pub(crate) fn now() -> Timestamp {
    Timestamp::constant(1_767_225_600, 0)
}

/// Spot costs this much of the on-demand price.
const SPOT_DISCOUNT: f64 = 0.4;

/// Reads a situation. Panics on what it does not understand: situations are part of a test's text.
pub(crate) fn parse(text: &str) -> (Snapshot, Round) {
    let lines: Vec<Line<'_>> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(Line::new)
        .collect();
    let of = |kind: &str| lines.iter().filter(move |line| line.kind == kind).collect::<Vec<_>>();
    let mut snapshot = Snapshot::default();
    // What types say of themselves is the provider's vocabulary.
    let spoken = of("type").into_iter().flat_map(|line| line.labels().into_keys());
    Arc::make_mut(&mut snapshot.vocabulary).well_known.extend(spoken);
    let catalog: Arc<[Arc<InstanceType>]> = of("type")
        .into_iter()
        .map(|line| Arc::new(instance_type(line)))
        .collect();
    for line in of("pool") {
        let pool = pool(line);
        if !line.has("nocatalog") {
            snapshot.catalogs.insert(pool.name.clone(), catalog.clone());
        }
        snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    }
    for line in of("node").into_iter().chain(of("claim")) {
        snapshot.put_node(Arc::new(machines::machine(line, &snapshot)));
    }
    for line in of("daemon") {
        let key = PodKey::new("default", line.name);
        snapshot.daemons.insert(
            key.clone(),
            Arc::new(Daemon {
                key,
                shape: Arc::new(pods::shape(line)),
            }),
        );
    }
    let mut round = Round::new(Vec::new(), now());
    for line in of("pod") {
        for pod in pods::pods(line) {
            if pod.node.is_none() || line.has("again") {
                round.pods.push(pod.key.clone());
            }
            snapshot.put_pod(Arc::new(pod));
        }
    }
    (snapshot, round)
}

struct Line<'t> {
    kind: &'t str,
    name: &'t str,
    words: Vec<(&'t str, &'t str)>,
}

impl<'t> Line<'t> {
    fn new(line: &'t str) -> Self {
        let mut words = line.split_whitespace();
        let (Some(kind), Some(name)) = (words.next(), words.next()) else {
            panic!("{line:?} has no name")
        };
        Self {
            kind,
            name,
            words: words.map(|word| word.split_once('=').unwrap_or((word, ""))).collect(),
        }
    }

    fn has(&self, word: &str) -> bool {
        self.words.iter().any(|(key, _)| *key == word)
    }

    fn all(&self, word: &str) -> impl Iterator<Item = &'t str> {
        self.words
            .iter()
            .filter(move |(key, _)| *key == word)
            .map(|(_, value)| *value)
    }

    fn get(&self, word: &str) -> Option<&'t str> {
        self.all(word).next()
    }

    fn list(&self, word: &str) -> Vec<&'t str> {
        self.get(word).into_iter().flat_map(|value| value.split(',')).collect()
    }

    /// Words of the form `prefix:key=value`.
    fn map(&self, prefix: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
        self.words
            .iter()
            .filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?.strip_prefix(':')?, *value)))
    }

    fn labels(&self) -> Labels {
        self.map("label")
            .map(|(key, value)| (LabelKey::from(full_key(key)), LabelValue::from(value)))
            .collect()
    }

    fn resources(&self) -> Resources {
        let known = ["cpu", "memory", "pods"]
            .into_iter()
            .filter_map(|name| Some((name, self.get(name)?)));
        known
            .chain(self.map("has"))
            .map(|(name, amount)| (ResourceName::from(name), quantity(amount)))
            .collect()
    }
}

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn full_key(key: &str) -> &str {
    match key {
        "zone" => vocabulary::ZONE,
        "arch" => vocabulary::ARCH,
        "os" => vocabulary::OS,
        "type" => vocabulary::INSTANCE_TYPE,
        "capacity" => vocabulary::CAPACITY_TYPE,
        "pool" => vocabulary::NODEPOOL,
        "host" => vocabulary::HOSTNAME,
        other => other,
    }
}

/// `key:Operator:value|value:minValues`
fn requirement(text: &str) -> Requirement {
    let mut parts = text.split(':');
    let mut part = || parts.next().unwrap_or_default();
    let (key, operator, values, least) = (part(), part(), part(), part());
    let written = SelectorRequirement {
        key: full_key(key).into(),
        operator: operator.parse().unwrap_or_else(|error| panic!("{text}: {error}")),
        values: values
            .split('|')
            .filter(|value| !value.is_empty())
            .map(LabelValue::from)
            .collect(),
        min_values: least.parse().ok(),
    };
    Requirement::try_from(&written).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn requirements(line: &Line<'_>) -> Requirements {
    let listed = [("zones", "zone"), ("types", "type"), ("sell", "capacity")]
        .into_iter()
        .filter(|(word, _)| line.has(word));
    let listed = listed.map(|(word, key)| Requirement::one_of(full_key(key), line.list(word)));
    listed.chain(line.all("where").map(requirement)).collect()
}

/// `key:Effect` or `key=value:Effect`
fn taints(line: &Line<'_>, word: &str) -> Vec<Taint> {
    let read = |text: &str| {
        let (key, effect) = text.rsplit_once(':').unwrap_or_else(|| panic!("{text} has no effect"));
        let (key, value) = key.split_once('=').unwrap_or((key, ""));
        Taint::new(
            key,
            value,
            effect.parse::<Effect>().unwrap_or_else(|error| panic!("{error}")),
        )
    };
    line.list(word).into_iter().map(read).collect()
}

fn instance_type(line: &Line<'_>) -> InstanceType {
    let price: f64 = line.get("price").map_or(1.0, |price| price.parse().unwrap());
    let mut zones = line.list("zones");
    let mut sold = line.list("sell");
    if zones.is_empty() {
        zones = vec!["a", "b"];
    }
    if sold.is_empty() {
        sold = vec!["spot", "on-demand"];
    }
    let sold_out = line.list("soldout");
    let offering = |zone: &str, capacity: &str| {
        let capacity_type: CapacityType = capacity.parse().unwrap();
        let labels = [(vocabulary::ZONE, zone), (vocabulary::CAPACITY_TYPE, capacity)];
        Offering {
            capacity_type,
            zone: zone.into(),
            price: if capacity_type == CapacityType::Spot {
                price * SPOT_DISCOUNT
            } else {
                price
            },
            available: !sold_out.contains(&format!("{zone}/{capacity}").as_str()),
            requirements: labels
                .into_iter()
                .map(|(key, value)| Requirement::one_of(key, [value]))
                .collect(),
            reservation_capacity: None,
            capacity_override: None,
            overhead_override: None,
        }
    };
    let offerings = zones
        .iter()
        .flat_map(|zone| sold.iter().map(|capacity| offering(zone, capacity)))
        .collect();
    let mut requirements: Requirements = [
        Requirement::one_of(vocabulary::INSTANCE_TYPE, [line.name]),
        Requirement::one_of(vocabulary::ARCH, [line.get("arch").unwrap_or("amd64")]),
        Requirement::one_of(vocabulary::OS, [line.get("os").unwrap_or("linux")]),
        Requirement::one_of(vocabulary::ZONE, zones),
        Requirement::one_of(vocabulary::CAPACITY_TYPE, sold),
    ]
    .into_iter()
    .collect();
    requirements.merge(&Requirements::from_labels(&line.labels()));
    let mut capacity = line.resources();
    if !capacity.lists("pods") {
        capacity.set(ResourceName::PODS, Quantity::from_int(110));
    }
    let reserved = line
        .map("reserved")
        .map(|(name, amount)| (name.into(), quantity(amount)))
        .collect();
    let overhead = Overhead {
        kube_reserved: reserved,
        ..Overhead::default()
    };
    InstanceType::new(line.name.into(), requirements, offerings, capacity, overhead)
}

fn class() -> NodeClassRef {
    NodeClassRef {
        group: "karpenter.test".into(),
        kind: "TestNodeClass".into(),
        name: "default".into(),
    }
}

fn pool(line: &Line<'_>) -> Pool {
    let labels = line.labels();
    let mut requirements = requirements(line);
    requirements.merge(&Requirements::from_labels(&labels));
    Pool {
        name: line.name.into(),
        uid: line.name.to_owned(),
        hash: "hash".to_owned(),
        template: Template {
            labels,
            annotations: Labels::new(),
            requirements,
            taints: taints(line, "taints"),
            startup_taints: taints(line, "startup"),
            class: class(),
            expire_after: None,
            termination_grace: None,
        },
        disruption: Disruption {
            policy: ConsolidationPolicy::WhenEmptyOrUnderutilized,
            consolidate_after: Some(SignedDuration::ZERO),
            budgets: Ok(vec![Budget::always(NodeShare::Percent(10))]),
        },
        limits: line
            .map("limit")
            .map(|(name, amount)| (name.into(), quantity(amount)))
            .collect(),
        weight: line.get("weight").map_or(0, |weight| weight.parse().unwrap()),
        replicas: line.has("static").then_some(1),
        ready: !line.has("notready"),
        deleting: line.has("deleting").then(now),
    }
}
