//! Situations in a few words, for check tables.
//!
//! ```text
//! type large    cpu=8 memory=32Gi price=0.8 zones=a,b sell=spot,on-demand  offer:spot/a=0.3 soldout=spot label:family=m
//!               reserve:r1/a=2 gpus=2
//! pool general  after=30s budgets=10%,Empty:1 policy=Balanced sell=spot,on-demand zones=a replicas=3 limit:nodes=5
//!               min:family=2 require:team=blue (after=never, broken-budget, deleting, notready, nocatalog)
//! node n1       pool=general type=large zone=a sell=on-demand drifted=7 event=20 gpus=2 held=2
//!               (settling, nominated, leaving, marked, terminating, down, protected, unprotected, young, unjoined, grace,
//!               foreign, missing:zone, missing:sell, missing:type)
//! pod  web      cpu=1 on=n1 count=3 started=60 keep=2m deletion-cost=5 priority=7 label:app=web select=zone:a
//!               holds=n1/gpu-0 (or holds=fabric/gpu-0/4Gi wants=8Gi)
//!               (protected, daemon, mirror, stateful, finished, ending, unready, worthless, pending, tolerant, owner=none,
//!               apart: from its like on a node, aloof: where that can be had, likes:type=large: where that can be had,
//!               spread: with its like over zones, local: with a volume of its node)
//! fabric f      memory=16Gi: a device gpu-0 that all nodes reach and that claims may share
//! pdb  budget   covers=web allows=0 (lenient, never, in=other)
//! ```
//!
//! Moments are seconds before now. A node without a type has a type of its own, with the node's price and no room.

mod devices;
mod objects;
mod shapes;

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use model::{InstanceType, Labels, Resources, Snapshot, snapshot::Room};

pub(crate) fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("a moment")
}

pub(crate) fn ago(seconds: &str) -> Timestamp {
    now() - SignedDuration::from_secs(seconds.parse().expect("seconds"))
}

/// One line, taken apart.
pub(crate) struct Line<'a> {
    pub kind: &'a str,
    pub name: &'a str,
    words: Vec<(&'a str, &'a str)>,
}

impl<'a> Line<'a> {
    fn new(text: &'a str) -> Self {
        let mut words = text.split_whitespace();
        let (kind, name) = (words.next().expect("a kind"), words.next().expect("a name"));
        let words = words.map(|word| word.split_once('=').unwrap_or((word, ""))).collect();
        Self { kind, name, words }
    }

    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.words
            .iter()
            .find(|(word, _)| *word == key)
            .map(|(_, value)| *value)
    }

    pub fn list(&self, key: &str) -> Vec<&'a str> {
        self.get(key).into_iter().flat_map(|value| value.split(',')).collect()
    }

    pub fn says(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Words such as `label:app=web`.
    pub fn map(&self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.words.iter().filter_map(move |(word, value)| {
            let (before, after) = word.split_once(':')?;
            (before == prefix).then_some((after, *value))
        })
    }

    pub fn labels(&self) -> Labels {
        self.map("label")
            .map(|(key, value)| (key.into(), value.into()))
            .collect()
    }

    pub fn resources(&self) -> Resources {
        let amounts = ["cpu", "memory"].into_iter().filter_map(|name| {
            let amount = self.get(name)?;
            Some((name.into(), amount.parse().expect("a quantity")))
        });
        amounts.collect()
    }
}

pub(crate) fn parse(situation: &str) -> Snapshot {
    let lines: Vec<Line<'_>> = situation
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(Line::new)
        .collect();
    let mut snapshot = Snapshot::default();
    let vocabulary = Arc::make_mut(&mut snapshot.vocabulary);
    vocabulary.reservation_id = Some(shapes::RESERVATION.into());
    vocabulary.well_known.insert(shapes::RESERVATION.into());
    let mut types: BTreeMap<String, Arc<InstanceType>> = BTreeMap::new();
    for line in &lines {
        match line.kind {
            "type" => drop(types.insert(line.name.to_owned(), Arc::new(shapes::instance_type(line)))),
            "node" if !line.says("type") => {
                types.insert(line.name.to_owned(), Arc::new(shapes::own_type(line)));
            }
            "pool" | "node" | "pod" | "pdb" | "fabric" => {}
            other => panic!("{other} is not part of a situation"),
        }
    }
    for line in &lines {
        match line.kind {
            "pool" => {
                snapshot.pools.insert(line.name.into(), Arc::new(shapes::pool(line)));
                if !line.says("nocatalog") {
                    let catalog: Vec<_> = types.values().cloned().collect();
                    snapshot.catalogs.insert(line.name.into(), catalog.into());
                }
            }
            "node" => {
                devices::of_node(line, &mut snapshot);
                snapshot.put_node(Arc::new(objects::node(line, &types)));
            }
            "pod" => {
                for mut pod in objects::pods(line) {
                    devices::hold(line, &mut pod, &mut snapshot);
                    objects::fasten(line, &mut pod, &mut snapshot);
                    snapshot.put_pod(Arc::new(pod));
                }
            }
            "fabric" => devices::fabric(line, &mut snapshot),
            "pdb" => {
                let budget = objects::disruption_budget(line);
                snapshot.budgets.insert(budget.key.clone(), Arc::new(budget));
            }
            _ => {}
        }
    }
    let held: Vec<_> = lines
        .iter()
        .filter(|line| line.says("held"))
        .map(objects::held)
        .collect();
    if !held.is_empty() {
        snapshot.room = Room::Held(held.into_iter().collect());
    }
    snapshot
}
