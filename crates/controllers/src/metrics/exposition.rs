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

    /// What there is to see at this moment, as one text.
    pub fn text(&self, scene: Option<&Scene<'_>>, now: Timestamp) -> String {
        let mut page = Page::default();
        self.write(&mut page, scene, now);
        page.finish()
    }

    /// Writes what there is to see at this moment. Without a scene there is nothing about single objects in it.
    pub fn write(&self, page: &mut Page, scene: Option<&Scene<'_>>, now: Timestamp) {
        let mut encoded = String::new();
        encode(&mut encoded, &self.registry).expect("writing to a string succeeds");
        page.take_over(&encoded);
        drop(encoded);
        self.metrics.claims.write(page, now);
        self.metrics.rounds.write(page, Instant::now());
        self.metrics.runtime.write(page, Instant::now());
        self.metrics.pods.write(page, now);
        if let Some(scene) = scene {
            scene.write(page, &self.metrics.conditions);
        }
    }
}
