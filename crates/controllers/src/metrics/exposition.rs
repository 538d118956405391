//! All that a scrape gets to see.

use std::sync::Arc;

use jiff::Timestamp;
use prometheus_client::{encoding::text::encode, registry::Registry};
use tokio::time::Instant;

use super::{Metrics, Scene, page::Page};

/// Metrics that are ready to be scraped.
pub struct Exposition {
    metrics: Arc<Metrics>,
    registry: Registry,
}

impl Exposition {
    pub fn of(metrics: &Arc<Metrics>) -> Self {
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        Self {
            metrics: metrics.clone(),
            registry,
        }
    }

    /// The text with the page of this moment behind it. Without a scene there is nothing about single objects on it. In a
    /// large cluster it has megabytes, so it is written in one place and not copied from one to the other.
    pub fn page(&self, text: String, scene: Option<&Scene<'_>>, now: Timestamp) -> String {
        let mut encoded = String::new();
        encode(&mut encoded, &self.registry).expect("writing to a string succeeds");
        let mut page = Page::after(text);
        page.take_over(&encoded);
        drop(encoded);
        self.metrics.claims.write(&mut page, now);
        self.metrics.rounds.write(&mut page, Instant::now());
        self.metrics.runtime.write(&mut page, Instant::now());
        self.metrics.pods.write(&mut page, now);
        if let Some(scene) = scene {
            scene.write(&mut page, &self.metrics.conditions);
        }
        page.into_text()
    }
}
