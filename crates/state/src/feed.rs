//! Lists and watches one kind into an index.
//!
//! ```text
//!            ┌──────────── version expired ────────────┐
//!            ▼                                         │
//!   list (pages) ──► watch from the list's version ──► watch again from the last version seen
//!        ▲  │ failed                    │ dropped, failed: pause
//!        └──┘ pause
//! ```
//!
//! Written on the plain list and watch calls rather than on kube's watcher, which does not tell the version of a list:
//! without it, a list that was under way during one of our own writes would undo that write in the index.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::StreamExt;
use kube::{
    Api, ResourceExt,
    api::{ListParams, WatchParams},
    core::WatchEvent,
};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use crate::{Index, Indexed, table::version};

/// How patient a feed is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedPace {
    pub first_pause: Duration,
    pub longest_pause: Duration,
    pub page_size: u32,
    /// How long the server keeps one watch open.
    pub watch_secs: u32,
}

impl Default for FeedPace {
    fn default() -> Self {
        Self {
            first_pause: Duration::from_millis(200),
            longest_pause: Duration::from_secs(10),
            page_size: 500,
            // Servers refuse five minutes and more.
            watch_secs: 290,
        }
    }
}

/// One kind on its way into an index.
pub struct Feed<K: Indexed> {
    api: Api<K>,
    kind: K::DynamicType,
    index: Arc<Index>,
    pace: FeedPace,
    /// The cluster may not know the kind: then there are no objects of it.
    optional: bool,
    /// The one object that is wanted, where others of its kind are none of our business.
    only: Option<String>,
}

enum WatchEnd {
    /// Go on from here.
    At(u64),
    /// The server has forgotten this version: only a list can tell what happened since.
    Expired,
}

/// A list that cannot be answered within this time is asked for again.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);

/// When the server wants to be asked again, if it says so.
pub fn retry_after(error: &kube::Error) -> Option<Duration> {
    let kube::Error::Api(status) = error else { return None };
    let secs = status.details.as_ref()?.retry_after_seconds;
    (secs > 0).then(|| Duration::from_secs(secs.into()))
}

impl<K: Indexed> Feed<K> {
    /// From here on the index counts as unsynced until this feed has listed once.
    pub fn new(api: Api<K>, kind: K::DynamicType, index: Arc<Index>, pace: FeedPace) -> Self {
        index.expect::<K>(&kind);
        Self {
            api,
            kind,
            index,
            pace,
            optional: false,
            only: None,
        }
    }

    /// As [`Feed::new`], of a kind whose definition may not be installed. It is looked for again and again.
    pub fn optional(api: Api<K>, kind: K::DynamicType, index: Arc<Index>, pace: FeedPace) -> Self {
        Self {
            optional: true,
            ..Self::new(api, kind, index, pace)
        }
    }

    /// Of all objects of the kind only the one of this name. So the right to read that one is enough.
    pub fn only(mut self, name: &str) -> Self {
        self.only = Some(format!("metadata.name={name}"));
        self
    }

    /// Runs until it is dropped.
    pub async fn run(self) {
        let mut pause = self.pace.first_pause;
        loop {
            let mut at = match self.list().await {
                Ok(at) => at,
                Err(kube::Error::Api(status)) if self.optional && status.code == 404 => {
                    debug!(kind = ?K::KIND, "the cluster does not know this kind");
                    self.index.reset(Vec::<K>::new(), 0, &self.kind);
                    sleep(self.pace.longest_pause).await;
                    continue;
                }
                Err(error) => {
                    warn!(kind = ?K::KIND, error = %error, "could not list");
                    sleep(pause.max(retry_after(&error).unwrap_or_default())).await;
                    pause = self.longer(pause);
                    continue;
                }
            };
            loop {
                let (begun, from) = (Instant::now(), at);
                let end = self.watch(at).await;
                // A watch that told something, or that lasted, was healthy whatever ended it. One that is refused at
                // once, even with word to list again, is no reason to ask without a pause.
                let told = matches!(end, WatchEnd::At(reached) if reached != from);
                if told || begun.elapsed() > self.pace.longest_pause {
                    pause = self.pace.first_pause;
                }
                sleep(pause).await;
                pause = self.longer(pause);
                match end {
                    WatchEnd::Expired => break,
                    WatchEnd::At(reached) => at = reached,
                }
            }
        }
    }

    fn longer(&self, pause: Duration) -> Duration {
        (pause * 2).min(self.pace.longest_pause)
    }

    async fn list(&self) -> Result<u64, kube::Error> {
        let mut params = ListParams::default().limit(self.pace.page_size);
        params.field_selector = self.only.clone();
        let mut listed = BTreeSet::new();
        loop {
            let page = match timeout(LIST_TIMEOUT, self.api.list(&params)).await {
                Ok(page) => page,
                Err(elapsed) => return Err(kube::Error::Service(Box::new(elapsed))),
            };
            let page = match page {
                Ok(page) => page,
                // The server no longer has the state that the earlier pages came from: begin again.
                Err(kube::Error::Api(status)) if status.code == 410 && params.continue_token.is_some() => {
                    params.continue_token = None;
                    listed.clear();
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.index.take_page(page.items, &self.kind, &mut listed);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => {
                    let at = version(page.metadata.resource_version.as_deref());
                    self.index.finish_list::<K>(&listed, at, &self.kind);
                    return Ok(at);
                }
            }
        }
    }

    async fn watch(&self, from: u64) -> WatchEnd {
        let mut params = WatchParams::default().timeout(self.pace.watch_secs);
        params.field_selector = self.only.clone();
        // A connection can die without a word; the server ends a healthy watch well before this.
        let silence = Duration::from_secs(u64::from(self.pace.watch_secs) + 30);
        let mut at = from;
        let opened = timeout(silence, self.api.watch(&params, &from.to_string())).await;
        let mut events = match opened {
            Ok(Ok(events)) => events.boxed(),
            Ok(Err(error)) => return self.ended(&error, at),
            Err(_) => return WatchEnd::At(at),
        };
        loop {
            let event = match timeout(silence, events.next()).await {
                Ok(Some(Ok(event))) => event,
                Ok(Some(Err(error))) => return self.ended(&error, at),
                Ok(None) | Err(_) => return WatchEnd::At(at),
            };
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    at = at.max(version(object.resource_version().as_deref()));
                    self.index.apply_with(object, &self.kind);
                }
                WatchEvent::Deleted(object) => {
                    at = at.max(version(object.resource_version().as_deref()));
                    self.index.delete_with(&object, &self.kind);
                }
                WatchEvent::Bookmark(bookmark) => at = at.max(version(Some(&bookmark.metadata.resource_version))),
                WatchEvent::Error(status) => return self.ended(&kube::Error::Api(status), at),
            }
        }
    }

    fn ended(&self, error: &kube::Error, at: u64) -> WatchEnd {
        match error {
            kube::Error::Api(status) if status.code == 410 => WatchEnd::Expired,
            error => {
                debug!(kind = ?K::KIND, error = %error, "watch ended");
                WatchEnd::At(at)
            }
        }
    }
}
