//! The frame around every simulated component: a queue of items that a change touched or that have come due, and a loop
//! that works them off one by one in a fixed order.
//!
//! A component says which items a change concerns and what to do about one item; it holds no other state of its own, so
//! it may be stopped and started at any moment. Next: [`crate::kubelet`], [`crate::workloads`], [`crate::binder`].

mod queue;

use std::{fmt::Debug, future::Future, sync::Arc, time::Duration};

use clock::Clock;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde::Serialize;
use serde_json::Value;
use tracing::debug;

pub use queue::Queue;

use crate::{
    dice::Dice,
    mirror::{Key, Listener, Mirror, Mirrored, Seen},
};

/// How long a component takes to notice a change. It also lets it see a burst of changes as one.
const REACTION: Duration = Duration::from_millis(20);
/// What failed is tried again this much later.
const RETRY: Duration = Duration::from_millis(500);

/// When to look at an item again, if nothing happens to it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    OnChange,
    After(Duration),
}

impl Next {
    /// At that moment, or on the next pass if it is over.
    pub fn at(moment: Timestamp, now: Timestamp) -> Self {
        Next::After(Duration::try_from(moment.duration_since(now)).unwrap_or_default())
    }
}

pub trait Component: Send + Sync + 'static {
    /// Items are worked off in this order.
    type Item: Ord + Clone + Debug + Send + Sync + 'static;

    const NAME: &'static str;

    /// Which items a change concerns. Too many is slow, too few is wrong.
    fn touched(mirror: &Mirror, seen: &Seen, items: &mut Vec<Self::Item>);

    /// Brings one item a step forward.
    fn reconcile(&self, world: &Ctx, item: &Self::Item) -> impl Future<Output = Result<Next, kube::Error>> + Send;
}

/// What every component works with.
#[derive(Clone)]
pub struct Ctx {
    pub client: Client,
    pub mirror: Arc<Mirror>,
    pub clock: Arc<dyn Clock>,
    pub dice: Dice,
}

/// The queue of a component and the listener that fills it.
pub fn listener<C: Component>() -> (Arc<Queue<C::Item>>, Listener) {
    let queue = Arc::new(Queue::default());
    let inlet = Arc::clone(&queue);
    let listener = move |mirror: &Mirror, seen: &Seen| {
        let mut items = Vec::new();
        C::touched(mirror, seen, &mut items);
        inlet.add(items);
    };
    (queue, Box::new(listener))
}

/// Works for as long as it is polled.
pub async fn run<C: Component>(component: C, ctx: Ctx, queue: Arc<Queue<C::Item>>) {
    loop {
        queue.something_is_due().await;
        tokio::time::sleep(REACTION).await;
        for item in queue.take_due() {
            match component.reconcile(&ctx, &item).await {
                Ok(Next::OnChange) => {}
                Ok(Next::After(delay)) => queue.add_after(item, delay),
                Err(error) if is_gone(&error) => {}
                Err(error) => {
                    debug!(component = C::NAME, ?item, %error, "will try again");
                    queue.add_after(item, RETRY);
                }
            }
        }
    }
}

/// The object went away in the meantime; its deletion will be told as a change.
fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

impl Ctx {
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn time(&self) -> Time {
        Time(self.now())
    }

    /// A seeded duration between the two ends of a range.
    pub fn delay(&self, (least, most): (Duration, Duration), words: &[&str]) -> SignedDuration {
        SignedDuration::try_from(self.dice.between(least, most, words)).unwrap_or(SignedDuration::MAX)
    }

    /// An address that looks like one of a cluster's network. It is always the same for the same name.
    pub fn address(&self, kind: &str, name: &str) -> String {
        let number = self.dice.below(1 << 24, &["address", kind, name]);
        format!("10.{}.{}.{}", number >> 16, (number >> 8) & 0xff, number & 0xff)
    }

    pub async fn create<K: Mirrored>(&self, namespace: &str, object: &K) -> Result<(), kube::Error> {
        let created = K::api(&self.client, namespace)
            .create(&PostParams::default(), object)
            .await?;
        self.mirror.wrote(created);
        Ok(())
    }

    pub async fn patch<K: Mirrored>(&self, key: &Key, patch: &Patch<Value>) -> Result<(), kube::Error> {
        let api = K::api(&self.client, &key.namespace);
        let patched = api.patch(&key.name, &PatchParams::default(), patch).await?;
        self.mirror.wrote(patched);
        Ok(())
    }

    pub async fn patch_status<K: Mirrored>(&self, key: &Key, patch: &Patch<Value>) -> Result<(), kube::Error> {
        let api = K::api(&self.client, &key.namespace);
        let patched = api.patch_status(&key.name, &PatchParams::default(), patch).await?;
        self.mirror.wrote(patched);
        Ok(())
    }

    /// Replaces the status by a merge patch, if it is another one.
    pub async fn publish<K, S>(&self, object: &K, old: Option<&S>, new: &S) -> Result<(), kube::Error>
    where
        K: Mirrored,
        S: Serialize + PartialEq,
    {
        self.publish_at(None, object, old, new).await
    }

    /// As [`Ctx::publish`], for a status that others write, too: refused if the object is not what the new status was
    /// computed from.
    pub async fn publish_over<K, S>(&self, object: &K, old: Option<&S>, new: &S) -> Result<(), kube::Error>
    where
        K: Mirrored,
        S: Serialize + PartialEq,
    {
        let version = object.meta().resource_version.as_deref();
        self.publish_at(version, object, old, new).await
    }

    async fn publish_at<K, S>(
        &self,
        version: Option<&str>,
        object: &K,
        old: Option<&S>,
        new: &S,
    ) -> Result<(), kube::Error>
    where
        K: Mirrored,
        S: Serialize + PartialEq,
    {
        if old == Some(new) {
            return Ok(());
        }
        let before = old
            .map(serde_json::to_value)
            .transpose()
            .map_err(kube::Error::SerdeError)?;
        let mut after = serde_json::to_value(new).map_err(kube::Error::SerdeError)?;
        erase_what_is_missing(before.as_ref(), &mut after);
        let mut patch = serde_json::json!({ "status": after });
        if let Some(version) = version {
            patch["metadata"] = serde_json::json!({ "resourceVersion": version });
        }
        let patch = Patch::Merge(patch);
        self.patch_status::<K>(&Key::of(object.meta()), &patch).await
    }

    /// Deletes exactly this object, not a later one of the same name. `None` leaves the grace to the object.
    pub async fn delete<K: Mirrored>(&self, object: &K, grace_secs: Option<u32>) -> Result<(), kube::Error> {
        let meta = object.meta();
        let key = Key::of(meta);
        let preconditions = Preconditions {
            uid: meta.uid.clone(),
            resource_version: None,
        };
        let params = DeleteParams {
            grace_period_seconds: grace_secs,
            preconditions: Some(preconditions),
            ..DeleteParams::background()
        };
        K::api(&self.client, &key.namespace).delete(&key.name, &params).await?;
        Ok(())
    }
}

/// A merge patch removes a field only where it says null.
fn erase_what_is_missing(before: Option<&Value>, after: &mut Value) {
    let (Some(Value::Object(before)), Value::Object(after)) = (before, after) else {
        return;
    };
    for (field, old) in before {
        match after.get_mut(field) {
            Some(new) => erase_what_is_missing(Some(old), new),
            None => {
                after.insert(field.clone(), Value::Null);
            }
        }
    }
}
