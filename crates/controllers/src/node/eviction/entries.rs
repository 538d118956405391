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
                entries.insert(victim.clone(), Entry { deadline, node });
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
}
