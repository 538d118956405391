//! Waits until a burst of pending pods is over, so that they are placed together.

use std::{collections::BTreeSet, time::Duration};

use api::labels;
use kube::ResourceExt;
use state::{Changes, Event};
use tokio::time::{Instant, sleep_until};

use crate::objects::taints_of;

/// A window that opens with the first trigger and closes when none has come for a while, or when it has been open for
/// long enough.
pub struct Batch {
    idle: Duration,
    longest: Duration,
    /// Who has triggered already; again is not news and does not keep the window open.
    seen: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collected {
    Closed,
    Batch,
}

impl Collected {
    pub fn is_closed(self) -> bool {
        self == Collected::Closed
    }
}

impl Batch {
    pub fn new(idle: Duration, longest: Duration) -> Self {
        Self {
            idle,
            longest,
            seen: BTreeSet::new(),
        }
    }

    /// Returns when a batch is complete. `look_again` opens the window without any change.
    pub async fn collect(mut self, changes: &mut Changes, look_again: Option<Instant>) -> Collected {
        loop {
            tokio::select! {
                biased;
                event = changes.recv() => match event {
                    None => return Collected::Closed,
                    Some(event) if self.is_news(&event) => break,
                    Some(_) => {}
                },
                () = sleep_until(look_again.unwrap_or_else(Instant::now)), if look_again.is_some() => break,
            }
        }
        let opened = Instant::now();
        let mut idle_until = opened + self.idle;
        loop {
            tokio::select! {
                biased;
                () = sleep_until(idle_until.min(opened + self.longest)) => return Collected::Batch,
                event = changes.recv() => match event {
                    None => return Collected::Closed,
                    Some(event) if self.is_news(&event) => idle_until = Instant::now() + self.idle,
                    Some(_) => {}
                },
            }
        }
    }

    fn is_news(&mut self, event: &Event) -> bool {
        trigger(event).is_some_and(|who| self.seen.insert(who))
    }
}

/// Who asks for a round: a pod that waits for a node, a node whose pods will have to go elsewhere, or a buffer that keeps
/// room for pods to come.
fn trigger(event: &Event) -> Option<String> {
    match event {
        Event::Pod(change) => {
            let pod = change.new.as_ref().filter(|pod| pod.is_provisionable())?;
            Some(pod.uid.to_string())
        }
        Event::Node(change) => {
            let node = change.new.as_ref()?;
            let disrupted = taints_of(node)
                .iter()
                .any(|taint| taint.key == labels::taints::DISRUPTED && taint.effect == "NoSchedule");
            disrupted.then(|| node.uid().unwrap_or_default())
        }
        // Room that was used is only noticed by looking.
        Event::Room(buffer) => Some(format!("room/{buffer}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::Pod;
    use state::Change;
    use tokio::{sync::mpsc, time::sleep};

    use super::*;
    use model::samples::pod;

    fn pending(name: &str) -> Event {
        let pod = Pod {
            unschedulable: true,
            uid: name.into(),
            ..pod(name)
        };
        Event::Pod(Change {
            key: pod.key.clone(),
            old: None,
            new: Some(Arc::new(pod)),
        })
    }

    /// When the window closes if pods come at these seconds; idle 5 s, at most 10 s.
    async fn closes_after(triggers: &[(u64, &'static str)]) -> u64 {
        let (sender, mut changes) = mpsc::unbounded_channel();
        let triggers = triggers.to_vec();
        let told = async move {
            let mut at = 0;
            for (second, name) in triggers {
                sleep(Duration::from_secs(second - at)).await;
                at = second;
                sender.send(pending(name)).expect("the window is open");
            }
            // Keep the channel open for longer than any window.
            sleep(Duration::from_secs(100)).await;
        };
        let begun = Instant::now();
        let batch = Batch::new(Duration::from_secs(5), Duration::from_secs(10));
        tokio::select! {
            biased;
            collected = batch.collect(&mut changes, None) => assert_eq!(collected, Collected::Batch),
            () = told => panic!("the window never closed"),
        }
        begun.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_closes_when_nothing_new_comes() {
        assert_eq!(closes_after(&[(0, "a")]).await, 5); // SC15.1.1
        assert_eq!(closes_after(&[(0, "a"), (3, "a")]).await, 5); // SC15.1.2
        assert_eq!(closes_after(&[(0, "a"), (3, "b")]).await, 8); // SC15.1.3
        assert_eq!(closes_after(&[(0, "a"), (4, "b"), (8, "c"), (9, "d")]).await, 10); // SC15.1.4
    }

    #[tokio::test(start_paused = true)]
    async fn another_look_opens_a_window_by_itself() {
        let (sender, mut changes) = mpsc::unbounded_channel();
        let begun = Instant::now();
        let batch = Batch::new(Duration::from_secs(1), Duration::from_secs(10));
        let collected = batch.collect(&mut changes, Some(begun + Duration::from_secs(10))).await;
        assert_eq!((collected, begun.elapsed().as_secs()), (Collected::Batch, 11));
        drop(sender);
        let batch = Batch::new(Duration::from_secs(1), Duration::from_secs(10));
        assert_eq!(batch.collect(&mut changes, None).await, Collected::Closed);
    }
}
