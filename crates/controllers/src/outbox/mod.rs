//! Events for the people who watch the cluster.
//!
//! A controller hands a [`Notice`] over and goes on; a task of its own writes it. Repeats within a notice's window are
//! dropped, and so is what the cluster does not accept: an event is a courtesy, not a record. What found no room in the
//! box was not said, and may be said again at once.

mod bucket;
mod notice;

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use clock::Clock;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tracing::debug;

use crate::{error::chain, writer::Writer};
use bucket::Bucket;
pub(crate) use notice::cut;
pub use notice::{About, Notice, Severity};

/// How many notices may wait to be written: about two megabytes of them.
const WAITING: usize = 4_000;
/// So much of the box is left to notices that nobody would repeat. A pass over a large cluster has more to say of its
/// nodes than fits; one pass after the other, everything is said.
const KEPT_FREE: usize = WAITING / 2;

/// Where controllers drop their notices.
#[derive(Clone)]
pub struct Outbox {
    clock: Arc<dyn Clock>,
    sender: mpsc::Sender<(Notice, Timestamp)>,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    /// Until when a notice with this key is a repeat.
    said: BTreeMap<String, Timestamp>,
    buckets: BTreeMap<Cow<'static, str>, Bucket>,
    forget_at: usize,
}

/// The other end: writes what was dropped.
pub struct Postman {
    writer: Writer,
    notices: mpsc::Receiver<(Notice, Timestamp)>,
    written: u64,
}

impl Outbox {
    pub fn new(writer: Writer, clock: Arc<dyn Clock>) -> (Self, Postman) {
        let (sender, notices) = mpsc::channel(WAITING);
        let outbox = Self {
            clock,
            sender,
            memory: Arc::default(),
        };
        let postman = Postman {
            writer,
            notices,
            written: 0,
        };
        (outbox, postman)
    }

    /// A full box loses the newest notice.
    pub fn publish(&self, notice: Notice) {
        let now = self.clock.now();
        let Ok(room) = self.sender.try_reserve() else { return };
        if self.memory.lock().is_news(&notice, now) {
            room.send((notice, now));
        }
    }

    /// As [`publish`](Self::publish), for what will be said again for as long as it is so.
    pub fn mention(&self, notice: Notice) {
        if self.sender.capacity() > KEPT_FREE {
            self.publish(notice);
        }
    }
}

impl Memory {
    fn is_news(&mut self, notice: &Notice, now: Timestamp) -> bool {
        let key = notice.key();
        if self.said.get(&key).is_some_and(|until| now < *until) {
            return false;
        }
        if let Some(rate) = notice.rate {
            let bucket = self
                .buckets
                .entry(notice.reason.clone())
                .or_insert_with(|| Bucket::full(rate, now));
            if !bucket.take(now) {
                return false;
            }
        }
        self.said.insert(key, now + notice.window);
        if self.said.len() > self.forget_at.max(1_024) {
            self.said.retain(|_, until| now < *until);
            self.forget_at = self.said.len() * 2;
        }
        true
    }
}

impl Postman {
    /// Runs until it is dropped.
    pub async fn run(mut self) {
        while let Some((notice, at)) = self.notices.recv().await {
            self.written += 1;
            let event = notice.into_event(at, self.written);
            let namespace = event.metadata.namespace.clone().unwrap_or_default();
            if let Err(error) = self.writer.post(&namespace, &event).await {
                debug!(error = %chain(&error), "event not recorded");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn notice(name: &str) -> Notice {
        Notice::warning("Test", About::node(name, "uid"), "message".to_owned())
    }

    fn at(secs: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs)
    }

    /// LC-M10: duplicates, another entity, a window of its own.
    #[test]
    fn repeats_are_dropped_for_as_long_as_the_window_lasts() {
        let mut memory = Memory::default();
        assert!(memory.is_news(&notice("a"), at(0)));
        assert!(!memory.is_news(&notice("a"), at(119)));
        assert!(memory.is_news(&notice("b"), at(119)));
        assert!(memory.is_news(&notice("a"), at(120)));
        let short = notice("c").every(SignedDuration::from_secs(5));
        assert!(memory.is_news(&short, at(0)));
        assert!(memory.is_news(&short, at(5)));
    }

    fn heard(postman: &mut Postman) -> Vec<String> {
        let heard = std::iter::from_fn(|| postman.notices.try_recv().ok());
        heard.map(|(notice, _)| notice.about.name).collect()
    }

    fn outbox() -> (Outbox, Postman) {
        let server = kube_mem::ApiServer::builder().build();
        let index = Arc::new(state::Index::new(Arc::default(), state::Served::new([])));
        let clock = clock::VirtualClock::starting_at(clock::VirtualClock::EPOCH);
        Outbox::new(Writer::new(server.client(), index), Arc::new(clock))
    }

    #[tokio::test(start_paused = true)]
    async fn what_found_no_room_was_not_said() {
        let (outbox, mut postman) = outbox();
        let names: Vec<String> = (0..WAITING + 10).map(|n| format!("{n:05}")).collect();
        let publish_all = || names.iter().for_each(|name| outbox.publish(notice(name)));
        publish_all();
        assert_eq!(heard(&mut postman), names[..WAITING]);
        publish_all();
        assert_eq!(heard(&mut postman), names[WAITING..]);
        publish_all();
        assert_eq!(heard(&mut postman), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_said_again_leaves_room_for_what_is_not() {
        let (outbox, mut postman) = outbox();
        let names: Vec<String> = (0..WAITING).map(|n| format!("{n:05}")).collect();
        let mention_all = || names.iter().for_each(|name| outbox.mention(notice(name)));
        mention_all();
        outbox.publish(notice("once"));
        let heard_first = heard(&mut postman);
        assert_eq!(heard_first.len(), WAITING - KEPT_FREE + 1);
        assert_eq!(heard_first.last().map(String::as_str), Some("once"));
        mention_all();
        assert_eq!(heard(&mut postman), names[WAITING - KEPT_FREE..]);
    }

    /// LC-M10: burst, then smoothed.
    #[test]
    fn a_rate_lets_a_burst_through_and_smooths_the_rest() {
        let mut memory = Memory::default();
        let passed = |memory: &mut Memory, from: u32, secs: i64| {
            let names = (from..from + 20).map(|n| notice(&n.to_string()).at_most(5, 10));
            names.filter(|notice| memory.is_news(notice, at(secs))).count()
        };
        assert_eq!(passed(&mut memory, 0, 0), 10);
        assert_eq!(passed(&mut memory, 100, 1), 5);
    }
}
