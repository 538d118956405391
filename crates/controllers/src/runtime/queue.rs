//! Keys that wait for work, each at most once.
//!
//! ```text
//!              add                     take                  done
//!   ┌──────┐ ───────►┌───────┐ ───────────────►┌─────────┐ ───────► idle, or waiting until its time
//!   │ idle │         │ ready │                 │ running │
//!   └──────┘ ◄───────└───▲───┘                 └────┬────┘
//!       time has come    └── added while running ───┘
//! ```
//!
//! No clock and no async in here: the worker passes the time in.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tokio::time::Instant;

#[derive(Debug)]
pub struct Queue<K> {
    /// In the order in which they became ready.
    ready: VecDeque<K>,
    queued: BTreeSet<K>,
    running: BTreeSet<K>,
    /// Added while running: to be run once more.
    dirty: BTreeSet<K>,
    delayed: BTreeMap<K, Instant>,
    by_time: BTreeSet<(Instant, K)>,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self {
            ready: VecDeque::new(),
            queued: BTreeSet::new(),
            running: BTreeSet::new(),
            dirty: BTreeSet::new(),
            delayed: BTreeMap::new(),
            by_time: BTreeSet::new(),
        }
    }
}

impl<K: Ord + Clone> Queue<K> {
    /// Something about this key has changed.
    pub fn add(&mut self, key: K) {
        if self.running.contains(&key) {
            self.dirty.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// Look at this key again then, if nothing happens to it earlier.
    pub fn add_at(&mut self, key: K, at: Instant) {
        self.cancel_delay(&key);
        self.delayed.insert(key.clone(), at);
        self.by_time.insert((at, key));
    }

    /// Makes ready what is due.
    pub fn wake(&mut self, now: Instant) {
        while self.by_time.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, key)) = self.by_time.pop_first() {
                self.delayed.remove(&key);
                self.add(key);
            }
        }
    }

    /// When [`Queue::wake`] has something to do.
    pub fn next_wake(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// The next key to work on. It is running until [`Queue::done`]; what it was waiting for is moot.
    pub fn take(&mut self) -> Option<K> {
        let key = self.ready.pop_front()?;
        self.queued.remove(&key);
        self.cancel_delay(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    pub fn done(&mut self, key: &K) {
        self.running.remove(key);
        if self.dirty.remove(key) {
            self.add(key.clone());
        }
    }

    pub fn depth(&self) -> usize {
        self.ready.len()
    }

    fn cancel_delay(&mut self, key: &K) {
        if let Some(at) = self.delayed.remove(key) {
            self.by_time.remove(&(at, key.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_key_waits_once_and_runs_alone() {
        let mut queue = Queue::default();
        queue.add("a");
        queue.add("b");
        queue.add("a");
        assert_eq!((queue.take(), queue.depth()), (Some("a"), 1));
        queue.add("a");
        assert_eq!(queue.take(), Some("b"));
        assert_eq!(queue.take(), None, "a is still running");
        queue.done(&"a");
        assert_eq!(queue.take(), Some("a"), "it was added while it ran");
        queue.done(&"a");
        assert_eq!(queue.take(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_word_on_when_to_look_again_counts() {
        let now = Instant::now();
        let later = |secs| now + Duration::from_secs(secs);
        let mut queue = Queue::default();
        queue.add_at("a", later(5));
        queue.add_at("a", later(9));
        queue.add_at("b", later(7));
        assert_eq!(queue.next_wake(), Some(later(7)));
        queue.wake(later(8));
        assert_eq!(queue.take(), Some("b"));
        assert_eq!(queue.take(), None);

        queue.add("a");
        assert_eq!(queue.take(), Some("a"));
        assert_eq!(queue.next_wake(), None, "a run makes the wait moot");
    }
}
