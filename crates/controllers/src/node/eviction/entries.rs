//! Pods that are to leave, and until when.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{Pod, PodKey, PodUid};
use parking_lot::Mutex;
use tokio::sync::mpsc;

/// A pod and no other of its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Victim {
    pub pod: PodKey,
    pub uid: PodUid,
}

impl Victim {
    pub fn of(pod: &Pod) -> Self {
        Self {
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The earliest that was ever given.
    pub deadline: Option<Timestamp>,
    pub node: String,
    /// When the server said that the pod goes. It stays here until it is seen to go: else the drain, which has not heard
    /// of it either, would send it away once more.
    pub granted: Option<Timestamp>,
}

/// The pods in the queue. Drains put them in; the queue takes them out.
#[derive(Debug)]
pub struct Evictions {
    entries: Mutex<BTreeMap<Victim, Entry>>,
    wake: mpsc::UnboundedSender<Victim>,
}

impl Evictions {
    /// Keys of new and of changed entries go to `wake`.
    pub fn new(wake: mpsc::UnboundedSender<Victim>) -> Self {
        Self {
            entries: Mutex::default(),
            wake,
        }
    }

    /// Adding again can only bring the deadline forward.
    pub fn add(&self, pod: &Pod, deadline: Option<Timestamp>, node: &str) {
        let victim = Victim::of(pod);
        let mut entries = self.entries.lock();
        match entries.get_mut(&victim) {
            Some(entry) => {
                let Some(sooner) = deadline.filter(|new| entry.deadline.is_none_or(|old| *new < old)) else {
                    return;
                };
                entry.deadline = Some(sooner);
            }
            None => {
                let node = node.to_owned();
                let granted = None;
                entries.insert(
                    victim.clone(),
                    Entry {
                        deadline,
                        node,
                        granted,
                    },
                );
            }
        }
        // The queue is gone only when the process stops.
        let _ = self.wake.send(victim);
    }

    pub fn entry(&self, victim: &Victim) -> Option<Entry> {
        self.entries.lock().get(victim).cloned()
    }

    pub fn holds(&self, pod: &Pod) -> bool {
        let entries = self.entries.lock();
        !entries.is_empty() && entries.contains_key(&Victim::of(pod))
    }

    /// The pods of a namespace that nobody has let go yet, in the order of their names.
    pub fn waiting_in(&self, namespace: &str) -> Vec<Victim> {
        let first = Victim {
            pod: PodKey::new(namespace, ""),
            uid: "".into(),
        };
        let entries = self.entries.lock();
        let of_namespace = entries
            .range(first..)
            .take_while(|(victim, _)| &*victim.pod.namespace == namespace);
        let waiting = of_namespace.filter(|(_, entry)| entry.granted.is_none());
        waiting.map(|(victim, _)| victim.clone()).collect()
    }

    pub fn grant(&self, victim: &Victim, now: Timestamp) {
        if let Some(entry) = self.entries.lock().get_mut(victim) {
            entry.granted = Some(now);
        }
    }

    pub fn remove(&self, victim: &Victim) {
        self.entries.lock().remove(victim);
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use model::samples::pod;

    fn at(secs: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs)
    }

    /// LC-Q2, LC-Q9, LC-Q10.
    #[test]
    fn deadlines_only_come_closer_and_uids_are_kept_apart() {
        let (wake, mut woken) = mpsc::unbounded_channel();
        let evictions = Evictions::new(wake);
        let victim = pod("p");
        evictions.add(&victim, None, "n");
        evictions.add(&victim, None, "n");
        evictions.add(&victim, Some(at(60)), "n");
        evictions.add(&victim, Some(at(90)), "n");
        let entry = evictions.entry(&Victim::of(&victim)).expect("it was added");
        assert_eq!(entry.deadline, Some(at(60)));
        let mut wakes = 0;
        while woken.try_recv().is_ok() {
            wakes += 1;
        }
        assert_eq!(wakes, 2, "a wake for the entry and one for its deadline");

        let namesake = Pod {
            uid: "other".into(),
            ..victim.clone()
        };
        assert!(!evictions.holds(&namesake));
        evictions.remove(&Victim::of(&victim));
        assert!(!evictions.holds(&victim));
    }

    #[test]
    fn the_pods_of_one_namespace_are_found() {
        let (wake, _woken) = mpsc::unbounded_channel();
        let evictions = Evictions::new(wake);
        for (namespace, name) in [("b", "y"), ("a", "x"), ("b", "x"), ("bb", "x")] {
            let key = PodKey::new(namespace, name);
            evictions.add(&Pod { key, ..pod("p") }, None, "n");
        }
        let names: Vec<_> = evictions.waiting_in("b").iter().map(|v| v.pod.to_string()).collect();
        assert_eq!(names, ["b/x", "b/y"]);
    }

    /// LC-Q6: drains add from many tasks while the queue takes out.
    #[test]
    fn adding_and_removing_at_once_loses_nobody() {
        let (wake, mut woken) = mpsc::unbounded_channel();
        let evictions = Evictions::new(wake);
        let name = |worker: usize, number: usize| format!("p{worker}-{number}");
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let evictions = &evictions;
                scope.spawn(move || {
                    for number in 0..250 {
                        evictions.add(&pod(&name(worker, number)), None, "n");
                    }
                });
            }
            let mut left = 1_000;
            while left > 0 {
                if let Ok(victim) = woken.try_recv() {
                    assert!(evictions.entry(&victim).is_some(), "a wake is never ahead of its entry");
                    evictions.remove(&victim);
                    left -= 1;
                }
            }
        });
        assert_eq!(evictions.waiting_in("default"), []);
    }
}
