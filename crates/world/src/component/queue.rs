//! Items that wait for work, now or at a later moment.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

/// Every item is in here at most once: the earliest moment wins.
pub struct Queue<I> {
    waiting: Mutex<Waiting<I>>,
    news: Notify,
}

struct Waiting<I> {
    due: BTreeMap<I, Instant>,
    order: BTreeSet<(Instant, I)>,
}

impl<I> Default for Queue<I> {
    fn default() -> Self {
        Self {
            waiting: Mutex::new(Waiting {
                due: BTreeMap::new(),
                order: BTreeSet::new(),
            }),
            news: Notify::new(),
        }
    }
}

impl<I: Ord + Clone> Queue<I> {
    pub fn add(&self, items: Vec<I>) {
        if items.is_empty() {
            return;
        }
        let now = Instant::now();
        let mut waiting = self.waiting.lock();
        for item in items {
            waiting.put(item, now);
        }
        drop(waiting);
        self.news.notify_one();
    }

    pub fn add_after(&self, item: I, delay: Duration) {
        self.waiting.lock().put(item, Instant::now() + delay);
        self.news.notify_one();
    }

    /// All items that are due, in their own order.
    pub fn take_due(&self) -> Vec<I> {
        let now = Instant::now();
        let mut waiting = self.waiting.lock();
        let mut taken = Vec::new();
        while waiting.order.first().is_some_and(|(due, _)| *due <= now) {
            let (_, item) = waiting.order.pop_first().expect("the first entry was just seen");
            waiting.due.remove(&item);
            taken.push(item);
        }
        taken.sort();
        taken
    }

    pub async fn something_is_due(&self) {
        loop {
            let next = self.waiting.lock().order.first().map(|(due, _)| *due);
            match next {
                Some(due) if due <= Instant::now() => return,
                Some(due) => {
                    tokio::select! {
                        biased;
                        () = self.news.notified() => {}
                        () = tokio::time::sleep_until(due) => return,
                    }
                }
                None => self.news.notified().await,
            }
        }
    }
}

impl<I: Ord + Clone> Waiting<I> {
    fn put(&mut self, item: I, due: Instant) {
        match self.due.get(&item).copied() {
            Some(earlier) if earlier <= due => return,
            Some(later) => {
                self.order.remove(&(later, item.clone()));
            }
            None => {}
        }
        self.due.insert(item.clone(), due);
        self.order.insert((due, item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_item_waits_once_and_at_its_earliest_moment() {
        let queue = Queue::default();
        queue.add_after("b", Duration::from_secs(9));
        queue.add_after("b", Duration::from_secs(2));
        queue.add_after("a", Duration::from_secs(2));
        queue.something_is_due().await;
        assert_eq!(queue.take_due(), ["a", "b"]);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(queue.take_due().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn news_wakes_a_waiting_loop() {
        let queue = std::sync::Arc::new(Queue::default());
        let waiting = std::sync::Arc::clone(&queue);
        let taken = tokio::spawn(async move {
            waiting.something_is_due().await;
            waiting.take_due()
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        queue.add(vec![7]);
        assert_eq!(taken.await.unwrap(), [7]);
    }
}
