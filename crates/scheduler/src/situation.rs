//! Situations in words: a line per pool, instance type, node, daemon and pod becomes a snapshot and a round.
//!
//! ```text
//! catalog standard      the catalogue of that name: standard, assorted, or fake-N
//! type  large  cpu=4 memory=16Gi zones=a,b sell=spot,on-demand price=0.2 soldout=a/spot label:size=large only=batch
//!              reserve=r1/a/2 override=a/spot/example.com/device=1
//! pool  batch  weight=10 limit:cpu=8 zones=a where=arch:In:amd64|arm64:2 taints=gpu:NoSchedule startup=boot:NoSchedule
//! node  n1     cpu=4 memory=8Gi pool=batch type=large zone=a taints=gpu:NoSchedule label:team=blue booting attach:ebs=2
//! claim c1     pool=batch types=large,small zones=a
//! daemon logs  cpu=100m
//! pod   web    cpu=1 count=3 select=zone:In:a term=arch:In:amd64 prefer=9*zone:In:b tolerates=gpu port=8080 on=n1 again
//!              spread=zone:2:min3:app=web near=zone:app=db apart=host wish-near=7*zone:app=db volume=data scratch=tmp
//! namespace blue label:team=blue
//! class  fast  driver=ebs at=zone:In:a at=zone:In:b immediate default
//! volume v1    driver=ebs at=zone:In:a local gone
//! pvc    data  class=fast volume=v1 unconfirmed gone lost
//! service web  label:app=web unselective
//! owner ReplicaSet/web label:app=web where=tier:Exists     pods name it by owner=ReplicaSet/web
//! ```
//!
//! Keys may be written short: `zone`, `arch`, `os`, `type`, `capacity`, `pool`, `host`. Every pool is offered every type
//! that does not say `only=`.

mod catalogs;
mod machines;
mod pods;
mod storage;
mod workloads;

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

/// Tells reservations apart.
pub(crate) const RESERVATION: &str = "karpenter.test/reservation";

/// Reads a situation. Panics on what it does not understand: situations are part of a test's text.
pub(crate) fn parse(text: &str) -> (Snapshot, Round) {
    let mut snapshot = Snapshot::default();
    let pods = extend(&mut snapshot, text);
    (snapshot, Round::new(pods, now()))
}

/// Adds what a text describes to a cluster, or puts it in place of what was there under the same name. The answer are
/// the pods that need a place.
pub(crate) fn extend(snapshot: &mut Snapshot, text: &str) -> Vec<PodKey> {
    let lines: Vec<Line<'_>> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(Line::new)
        .collect();
    let known = [
        "catalog",
        "type",
        "pool",
        "node",
        "claim",
        "daemon",
        "pod",
        "namespace",
        "class",
        "volume",
        "pvc",
        "service",
        "owner",
    ];
    for line in &lines {
        assert!(known.contains(&line.kind), "{} is not a kind of line", line.kind);
    }
    let of = |kind: &str| lines.iter().filter(move |line| line.kind == kind).collect::<Vec<_>>();
    let types: Vec<(Option<&str>, Arc<InstanceType>)> = of("catalog")
        .into_iter()
        .flat_map(|line| catalogs::named(line.name))
        .map(|kind| (None, Arc::new(kind)))
        .chain(
            of("type")
                .into_iter()
                .map(|line| (line.get("only"), Arc::new(instance_type(line)))),
        )
        .collect();
    speak(
        snapshot,
        of("type").into_iter().flat_map(|line| line.labels().into_keys()),
        &types,
    );
    let earlier = snapshot.catalogs.values().next().cloned();
    for line in of("pool") {
        let pool = pool(line);
        let offered = types
            .iter()
            .filter(|(only, _)| only.is_none_or(|only| *only == *line.name));
        let offered: Arc<[Arc<InstanceType>]> = offered.map(|(_, kind)| kind.clone()).collect();
        let catalog = earlier.clone().filter(|_| types.is_empty()).unwrap_or(offered);
        if !line.has("nocatalog") {
            snapshot.catalogs.insert(pool.name.clone(), catalog);
        }
        snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    }
    for line in of("namespace") {
        snapshot.namespaces.insert(line.name.into(), Arc::new(line.labels()));
    }
    for line in &lines {
        storage::read(line, snapshot);
        workloads::read(line, snapshot);
    }
    for line in of("node").into_iter().chain(of("claim")) {
        snapshot.put_node(Arc::new(machines::machine(line, snapshot)));
        let limits: std::collections::BTreeMap<Arc<str>, u32> = line
            .map("attach")
            .map(|(driver, most)| (driver.into(), most.parse().unwrap()))
            .collect();
        if !limits.is_empty() {
            snapshot.attach_limits.insert(line.name.into(), Arc::new(limits));
        }
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
    let mut waiting = Vec::new();
    for line in of("pod") {
        for pod in pods::pods(line) {
            if pod.node.is_none() && !line.has("idle") || line.has("again") {
                waiting.push(pod.key.clone());
            }
            snapshot.put_pod(Arc::new(pod));
        }
    }
    waiting
}

/// What types say of themselves is the provider's vocabulary.
fn speak(snapshot: &mut Snapshot, labels: impl Iterator<Item = LabelKey>, types: &[(Option<&str>, Arc<InstanceType>)]) {
    let vocabulary = Arc::make_mut(&mut snapshot.vocabulary);
    vocabulary.well_known.extend(labels);
    for (_, kind) in types {
        let mut offerings = kind.offerings.iter();
        if offerings.any(|offering| offering.capacity_type == CapacityType::Reserved) {
            vocabulary.reservation_id = Some(RESERVATION.into());
            vocabulary.well_known.insert(RESERVATION.into());
        }
        if kind.requirements.contains(catalogs::INTEGER) {
            let keys = [catalogs::SIZE, catalogs::SPECIAL, catalogs::INTEGER];
            vocabulary.well_known.extend(keys.map(LabelKey::from));
        }
    }
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

pub(crate) fn full_key(key: &str) -> &str {
    match key {
        "zone" => vocabulary::ZONE,
        "arch" => vocabulary::ARCH,
        "os" => vocabulary::OS,
        "type" => vocabulary::INSTANCE_TYPE,
        "capacity" => vocabulary::CAPACITY_TYPE,
        "pool" => vocabulary::NODEPOOL,
        "host" => vocabulary::HOSTNAME,
        "reservation" => RESERVATION,
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
    let mut offerings: Vec<Offering> = zones
        .iter()
        .flat_map(|zone| sold.iter().map(|capacity| offering(zone, capacity)))
        .collect();
    for text in line.all("override") {
        let (place, changed) = text
            .split_once('/')
            .and_then(|(zone, rest)| Some((zone, rest.split_once('/')?)))
            .unwrap();
        let (resource, amount) = changed.1.split_once('=').unwrap();
        let here = |offering: &&mut Offering| offering.zone == *place && offering.capacity_type.as_str() == changed.0;
        for offering in offerings.iter_mut().filter(here) {
            let changed = offering.capacity_override.get_or_insert_default();
            changed.set(resource.into(), quantity(amount));
        }
    }
    offerings.extend(line.all("reserve").map(|text| reservation(text, price)));
    if line.has("reserve") {
        sold.push("reserved");
    }
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

/// `id/zone/count`; what is paid for already costs next to nothing.
fn reservation(text: &str, price: f64) -> Offering {
    let mut parts = text.split('/');
    let mut part = || parts.next().unwrap_or_else(|| panic!("{text} is not a reservation"));
    let (id, zone, count) = (part(), part(), part());
    let labels = [
        (vocabulary::ZONE, zone),
        (vocabulary::CAPACITY_TYPE, "reserved"),
        (RESERVATION, id),
    ];
    Offering {
        capacity_type: CapacityType::Reserved,
        zone: zone.into(),
        price: price / 1e7,
        available: true,
        requirements: labels
            .into_iter()
            .map(|(key, value)| Requirement::one_of(key, [value]))
            .collect(),
        reservation_capacity: Some(count.parse().unwrap()),
        capacity_override: None,
        overhead_override: None,
    }
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
