//! List, then watch, then list again when the watch is of no more use.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, pin_mut};
use kube::{
    Client,
    api::{ListParams, WatchEvent, WatchParams},
};
use tracing::debug;

use super::{Mirror, Mirrored, News};

/// A list that failed is tried again this much later.
const RETRY: Duration = Duration::from_secs(1);
/// Servers end watches after some minutes; asking for it makes the moment the same in every run.
const WATCH_SECS: u32 = 290;

/// Keeps one kind of the mirror current for as long as it is polled.
pub async fn run<K: Mirrored>(client: Client, mirror: Arc<Mirror>) {
    loop {
        match list::<K>(&client, &mirror).await {
            Ok(version) => watch::<K>(&client, &mirror, version).await,
            Err(error) => {
                debug!(kind = K::NOUN, %error, "list failed");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

async fn list<K: Mirrored>(client: &Client, mirror: &Mirror) -> Result<String, kube::Error> {
    let list = K::api(client, "").list(&ListParams::default()).await?;
    let version = list.metadata.resource_version.unwrap_or_default();
    let objects = list.items.into_iter().map(Arc::new).collect();
    mirror.learn(News::<K>::All(objects, version.parse().unwrap_or_default()));
    Ok(version)
}

/// Returns when the server no longer knows the version that the watch would have to go on from.
async fn watch<K: Mirrored>(client: &Client, mirror: &Mirror, mut version: String) {
    let params = WatchParams::default().timeout(WATCH_SECS);
    loop {
        let stream = match K::api(client, "").watch(&params, &version).await {
            Ok(stream) => stream,
            Err(error) => {
                debug!(kind = K::NOUN, %error, "watch failed");
                tokio::time::sleep(RETRY).await;
                return;
            }
        };
        pin_mut!(stream);
        while let Some(event) = stream.next().await {
            let news: News<K> = match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => News::Put(Arc::new(object)),
                Ok(WatchEvent::Deleted(object)) => News::Gone(Arc::new(object)),
                Ok(WatchEvent::Bookmark(mark)) => {
                    version = mark.metadata.resource_version;
                    continue;
                }
                Ok(WatchEvent::Error(status)) => {
                    debug!(kind = K::NOUN, %status, "watch ended by the server");
                    return;
                }
                Err(error) => {
                    debug!(kind = K::NOUN, %error, "watch broke");
                    return;
                }
            };
            version = news.version().to_string();
            mirror.learn(news);
        }
    }
}
