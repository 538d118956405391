//! Conditions of objects: how long each has been as it is, and how they change.
//!
//! For every kind there are families of its own, `operator_nodeclaim_…`, and the older ones that all kinds share and
//! that tell them apart by labels. Alerts in the field use both.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use parking_lot::Mutex;

use super::page::{Kind as FamilyKind, Page};
use super::text_histogram::TextHistogram;

/// A kind whose conditions are watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watched {
    pub group: String,
    pub kind: String,
    /// The kind takes part in the families that all kinds share; nodes do not.
    pub shared: bool,
    /// Labels of the object that become labels of its series.
    pub labels: Vec<String>,
    pub buckets: Buckets,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Buckets {
    /// From half a second to hours.
    Wide,
    /// The default of Prometheus clients.
    Default,
}

impl Buckets {
    fn bounds(self) -> Vec<f64> {
        match self {
            Buckets::Wide => (0..15).map(|n| 0.5 * f64::from(1_u32 << n)).collect(),
            Buckets::Default => super::DEFAULT_BUCKETS.to_vec(),
        }
    }
}

/// One object of a watched kind.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    pub labels: &'a BTreeMap<String, String>,
    pub deleting: Option<Timestamp>,
    /// Our finalizer is on it.
    pub is_held: bool,
    pub conditions: &'a [Condition],
}

type Labels = Vec<(String, String)>;

/// What happened, by the labels of its series.
#[derive(Debug, Default)]
pub struct ConditionMetrics {
    counted: Mutex<BTreeMap<Watched, Counted>>,
}

#[derive(Debug, Default)]
struct Counted {
    transitions: BTreeMap<Labels, u64>,
    transition_secs: BTreeMap<Labels, TextHistogram>,
    termination_secs: BTreeMap<Labels, TextHistogram>,
    /// The same for the families that all kinds share, whose buckets are others.
    shared_transition_secs: BTreeMap<Labels, TextHistogram>,
    shared_termination_secs: BTreeMap<Labels, TextHistogram>,
}

impl ConditionMetrics {
    /// A condition has another status than before.
    pub fn transitioned(&self, kind: &Watched, object: &Object<'_>, before: &Condition, after: &Condition) {
        let mut all = self.counted.lock();
        let counted = all.entry(kind.clone()).or_default();
        let mut labels = extra(kind, object);
        push(&mut labels, "type", &after.type_);
        let took = after
            .last_transition_time
            .0
            .duration_since(before.last_transition_time.0);
        let mut was = labels.clone();
        push(&mut was, "status", &before.status);
        let took = took.as_secs_f64();
        observe(
            &mut counted.shared_transition_secs,
            of_kind(kind, &was),
            Buckets::Default,
            took,
        );
        observe(&mut counted.transition_secs, was, kind.buckets, took);
        push(&mut labels, "status", &after.status);
        push(&mut labels, "reason", &after.reason);
        *counted.transitions.entry(labels).or_default() += 1;
    }

    /// An object is gone, so long after it was asked to go.
    pub fn terminated(&self, kind: &Watched, object: &Object<'_>, took_secs: f64) {
        let mut all = self.counted.lock();
        let counted = all.entry(kind.clone()).or_default();
        let labels = extra(kind, object);
        observe(
            &mut counted.shared_termination_secs,
            of_kind(kind, &labels),
            Buckets::Default,
            took_secs,
        );
        observe(&mut counted.termination_secs, labels, kind.buckets, took_secs);
    }

    /// Writes what was counted of a kind, and what its objects are like now.
    pub(super) fn write(&self, page: &mut Page, kind: &Watched, objects: &[Object<'_>], now: Timestamp) {
        let prefix = format!("operator_{}", kind.kind.to_lowercase());
        if let Some(counted) = self.counted.lock().get(kind) {
            let name = format!("{prefix}_status_condition_transitions_total");
            let mut family = page.begin(name, FamilyKind::Counter, "Changes of conditions");
            for (labels, count) in &counted.transitions {
                family.sample(labels, *count as f64);
            }
            let name = format!("{prefix}_status_condition_transition_seconds");
            let help = "How long a condition was in its status before it changed";
            TextHistogram::write_all(page, &name, help, &counted.transition_secs);
            let name = format!("{prefix}_termination_duration_seconds");
            let help = "From the deletion of an object to its end";
            TextHistogram::write_all(page, &name, help, &counted.termination_secs);
        }
        write_gauges(page, &prefix, &[(kind, objects)], now, extra);
    }

    /// Writes the families that all kinds share.
    pub(super) fn write_shared(&self, page: &mut Page, kinds: &[(&Watched, &[Object<'_>])], now: Timestamp) {
        self.write_counted(page);
        let kinds: Vec<_> = kinds.iter().filter(|(kind, _)| kind.shared).copied().collect();
        write_gauges(page, "operator", &kinds, now, |kind, _| group_and_kind(kind));
    }

    fn write_counted(&self, page: &mut Page) {
        let all = self.counted.lock();
        let shared = || all.iter().filter(|(kind, _)| kind.shared).map(|(_, counted)| counted);
        let mut transitions: BTreeMap<Labels, u64> = BTreeMap::new();
        for (kind, counted) in all.iter().filter(|(kind, _)| kind.shared) {
            for (labels, count) in &counted.transitions {
                *transitions.entry(of_kind(kind, labels)).or_default() += count;
            }
        }
        let name = "operator_status_condition_transitions_total";
        let mut family = page.family(name, FamilyKind::Counter, "Changes of conditions");
        for (labels, count) in &transitions {
            family.sample(labels, *count as f64);
        }
        let help = "How long a condition was in its status before it changed";
        let secs = shared().flat_map(|counted| &counted.shared_transition_secs);
        TextHistogram::write_all(page, "operator_status_condition_transition_seconds", help, secs);
        let help = "From the deletion of an object to its end";
        let secs = shared().flat_map(|counted| &counted.shared_termination_secs);
        TextHistogram::write_all(page, "operator_termination_duration_seconds", help, secs);
    }
}

fn write_gauges(
    page: &mut Page,
    prefix: &str,
    kinds: &[(&Watched, &[Object<'_>])],
    now: Timestamp,
    first: impl Fn(&Watched, &Object<'_>) -> Labels,
) {
    let every = || {
        kinds
            .iter()
            .flat_map(|(kind, objects)| objects.iter().map(move |object| (*kind, object)))
    };
    let named = |kind: &Watched, object: &Object<'_>| {
        let mut labels = first(kind, object);
        push(&mut labels, "namespace", object.namespace);
        push(&mut labels, "name", object.name);
        labels
    };
    let described = |kind: &Watched, object: &Object<'_>, condition: &Condition| {
        let mut labels = named(kind, object);
        push(&mut labels, "type", &condition.type_);
        push(&mut labels, "status", &condition.status);
        push(&mut labels, "reason", &condition.reason);
        labels
    };
    let name = format!("{prefix}_status_condition_count");
    let mut family = page.begin(name, FamilyKind::Gauge, "Conditions of objects");
    for (kind, object) in every() {
        for condition in object.conditions {
            family.sample(&described(kind, object, condition), 1.0);
        }
        family.pass_on();
    }
    let name = format!("{prefix}_status_condition_current_status_seconds");
    let mut family = page.begin(name, FamilyKind::Gauge, "How long conditions have been as they are");
    for (kind, object) in every() {
        for condition in object.conditions {
            let since = now.duration_since(condition.last_transition_time.0).as_secs_f64();
            family.sample(&described(kind, object, condition), since);
        }
        family.pass_on();
    }
    let name = format!("{prefix}_termination_current_time_seconds");
    let mut family = page.begin(name, FamilyKind::Gauge, "How long objects have been on their way out");
    for (kind, object) in every() {
        if let Some(since) = object.deleting {
            family.sample(&named(kind, object), now.duration_since(since).as_secs_f64());
        }
    }
}

fn push(labels: &mut Labels, key: &str, value: &str) {
    labels.push((key.to_owned(), value.to_owned()));
}

/// Labels that the kind takes over from its objects, under names that Prometheus accepts.
fn extra(kind: &Watched, object: &Object<'_>) -> Labels {
    let value = |key: &String| object.labels.get(key).cloned().unwrap_or_default();
    kind.labels.iter().map(|key| (label_name(key), value(key))).collect()
}

/// `karpenter_sh_nodepool` for `karpenter.sh/nodepool`.
pub fn label_name(key: &str) -> String {
    let legal = |letter: char| {
        if letter.is_ascii_alphanumeric() { letter } else { '_' }
    };
    key.chars().map(legal).collect()
}

fn group_and_kind(kind: &Watched) -> Labels {
    vec![
        ("group".to_owned(), kind.group.clone()),
        ("kind".to_owned(), kind.kind.clone()),
    ]
}

/// The labels in the families that all kinds share: without those of the kind itself.
fn of_kind(kind: &Watched, labels: &Labels) -> Labels {
    let mut shared = group_and_kind(kind);
    shared.extend(labels.iter().skip(kind.labels.len()).cloned());
    shared
}

fn observe(all: &mut BTreeMap<Labels, TextHistogram>, labels: Labels, buckets: Buckets, secs: f64) {
    let histogram = || TextHistogram::new(buckets.bounds());
    all.entry(labels).or_insert_with(histogram).observe(secs);
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs)
    }

    fn condition(status: &str, since: i64) -> Condition {
        Condition {
            type_: "Launched".to_owned(),
            status: status.to_owned(),
            reason: "Because".to_owned(),
            message: String::new(),
            last_transition_time: Time(at(since)),
            observed_generation: None,
        }
    }

    #[test]
    fn a_change_is_counted_for_its_kind_and_for_all_kinds() {
        let kind = Watched {
            group: "karpenter.sh".to_owned(),
            kind: "NodeClaim".to_owned(),
            shared: true,
            labels: vec!["karpenter.sh/nodepool".to_owned()],
            buckets: Buckets::Wide,
        };
        let labels = BTreeMap::from([("karpenter.sh/nodepool".to_owned(), "general".to_owned())]);
        let (before, after) = (condition("Unknown", 0), condition("True", 3));
        let object = Object {
            namespace: "",
            name: "a",
            labels: &labels,
            deleting: Some(at(10)),
            is_held: false,
            conditions: std::slice::from_ref(&after),
        };
        let metrics = ConditionMetrics::default();
        metrics.transitioned(&kind, &object, &before, &after);
        metrics.terminated(&kind, &object, 2.0);
        let mut page = Page::default();
        let objects = [object];
        metrics.write(&mut page, &kind, &objects, at(13));
        metrics.write_shared(&mut page, &[(&kind, &objects)], at(13));
        let text = page.finish();
        for line in [
            r#"operator_nodeclaim_status_condition_transitions_total{karpenter_sh_nodepool="general",type="Launched",status="True",reason="Because"} 1"#,
            r#"operator_nodeclaim_status_condition_transition_seconds_bucket{karpenter_sh_nodepool="general",type="Launched",status="Unknown",le="4"} 1"#,
            r#"operator_nodeclaim_status_condition_current_status_seconds{karpenter_sh_nodepool="general",namespace="",name="a",type="Launched",status="True",reason="Because"} 10"#,
            r#"operator_nodeclaim_termination_current_time_seconds{karpenter_sh_nodepool="general",namespace="",name="a"} 3"#,
            r#"operator_nodeclaim_termination_duration_seconds_sum{karpenter_sh_nodepool="general"} 2"#,
            r#"operator_status_condition_count{group="karpenter.sh",kind="NodeClaim",namespace="",name="a",type="Launched",status="True",reason="Because"} 1"#,
            r#"operator_status_condition_transition_seconds_count{group="karpenter.sh",kind="NodeClaim",type="Launched",status="Unknown"} 1"#,
            r#"operator_termination_duration_seconds_count{group="karpenter.sh",kind="NodeClaim"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
    }
}
