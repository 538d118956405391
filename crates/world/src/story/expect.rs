//! What a scenario waits for and what it expects.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use crate::{
    checkers::{Moment, Verdict, all},
    kubelet::pods::node_of,
    mirror::{Change, Seen},
    workloads::{is_active, is_ready},
};

/// Something that is true of a world at some moments.
pub struct Condition {
    pub what: String,
    check: Box<dyn Fn(&Moment<'_>) -> Verdict>,
}

impl Condition {
    /// What is missing, if something is.
    pub fn check(&self, moment: &Moment<'_>) -> Verdict {
        (self.check)(moment)
    }
}

/// A condition in the scenario's own words.
pub fn that(what: &str, holds: impl Fn(&Moment<'_>) -> bool + 'static) -> Condition {
    let check = move |moment: &Moment<'_>| holds(moment).then_some(()).ok_or_else(String::new);
    Condition {
        what: what.to_owned(),
        check: Box::new(check),
    }
}

/// Every rule that must hold at rest does: workloads are whole and nothing is half done.
pub fn settled() -> Condition {
    Condition {
        what: "the world is at rest".to_owned(),
        check: Box::new(|moment| all().iter_mut().try_for_each(|checker| checker.at_rest(moment))),
    }
}

/// Nothing is left that costs money: no claim, no node of a pool, no machine.
pub fn nothing_runs() -> Condition {
    that("no claims, nodes and machines are left", |moment| {
        moment.scene.node_claims.is_empty() && moment.scene.nodes.is_empty() && moment.cloud.live().is_empty()
    })
}

/// The pods with a label `app` of this value.
#[derive(Clone, Debug)]
pub struct Pods {
    app: String,
}

pub fn pods(app: &str) -> Pods {
    Pods { app: app.to_owned() }
}

impl Pods {
    fn of<'a>(&'a self, moment: &Moment<'_>) -> impl Iterator<Item = std::sync::Arc<Pod>> + use<'a> {
        moment
            .scene
            .pods
            .all()
            .into_iter()
            .filter(|pod| app_of(pod) == Some(&self.app))
    }

    /// There are pods, and all of them are ready.
    pub fn all_ready(self) -> Condition {
        that(&format!("all pods of {} are ready", self.app), move |moment| {
            let mut pods = self.of(moment).peekable();
            pods.peek().is_some() && pods.all(|pod| is_active(&pod) && is_ready(&pod))
        })
    }

    /// Exactly so many pods, all ready.
    pub fn running(self, count: usize) -> Condition {
        that(&format!("{count} pods of {} run", self.app), move |moment| {
            let pods: Vec<_> = self.of(moment).collect();
            pods.len() == count && pods.iter().all(|pod| is_active(pod) && is_ready(pod))
        })
    }

    pub fn none(self) -> Condition {
        that(&format!("{} has no pods", self.app), move |moment| {
            self.of(moment).next().is_none()
        })
    }

    pub fn none_on(self, node: &str) -> Condition {
        let node = node.to_owned();
        that(&format!("{} has no pods on {node}", self.app), move |moment| {
            self.of(moment).all(|pod| node_of(&pod) != Some(&node))
        })
    }

    /// How many are ready.
    pub fn ready(self) -> ReadyPods {
        ReadyPods { app: self.app }
    }
}

fn app_of(pod: &Pod) -> Option<&String> {
    pod.metadata.labels.as_ref()?.get("app")
}

/// The number of ready pods of an app.
pub struct ReadyPods {
    app: String,
}

impl ReadyPods {
    pub fn at_least(self, count: i64) -> AtLeast {
        AtLeast { app: self.app, count }
    }
}

pub struct AtLeast {
    app: String,
    count: i64,
}

impl AtLeast {
    /// At every instant since the last fault was injected, or since the world began.
    pub fn throughout(self) -> Expectation {
        Expectation::Throughout {
            app: self.app,
            least: self.count,
        }
    }
}

/// What a scenario expects, now or over a stretch of time.
pub enum Expectation {
    Now(Condition),
    Throughout { app: String, least: i64 },
}

impl From<Condition> for Expectation {
    fn from(condition: Condition) -> Self {
        Expectation::Now(condition)
    }
}

impl Expectation {
    /// What is wrong, if something is.
    pub fn check(&self, moment: &Moment<'_>, record: &Record) -> Result<(), String> {
        match self {
            Expectation::Now(condition) => condition
                .check(moment)
                .map_err(|missing| format!("{}: {missing}", condition.what)),
            Expectation::Throughout { app, least } => match record.least_ready(app) {
                found if found >= *least => Ok(()),
                found => Err(format!(
                    "{app} had only {found} ready pods at one point, at least {least} were expected"
                )),
            },
        }
    }
}

/// How many pods of each app were ready, over time.
#[derive(Default)]
pub struct Record {
    now: BTreeMap<String, i64>,
    least: BTreeMap<String, i64>,
}

impl Record {
    pub fn see(&mut self, _: Timestamp, seen: &Seen) {
        let Seen::Pod(Change { old, new, .. }) = seen else {
            return;
        };
        let counts = |pod: &Option<std::sync::Arc<Pod>>| {
            pod.as_ref()
                .filter(|pod| is_active(pod) && is_ready(pod))
                .and_then(|pod| app_of(pod).cloned())
        };
        let (before, after) = (counts(old), counts(new));
        if before == after {
            return;
        }
        for (app, step) in before.map(|app| (app, -1)).into_iter().chain(after.map(|app| (app, 1))) {
            let now = self.now.entry(app.clone()).or_default();
            *now += step;
            let now = *now;
            let least = self.least.entry(app).or_insert(now);
            *least = now.min(*least);
        }
    }

    /// Forgets what was; the present is the least so far.
    pub fn begin_anew(&mut self) {
        self.least = self.now.clone();
    }

    fn least_ready(&self, app: &str) -> i64 {
        self.least.get(app).copied().unwrap_or_default()
    }
}
