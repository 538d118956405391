//! The interruption queue: what EC2 announces, as notices.

use std::sync::Arc;

use futures::future::try_join_all;
use model::CapacityType;
use parking_lot::RwLock;
use provider::{Notice, NoticeKind};
use tracing::warn;

use crate::{
    error::AwsError,
    instances::Freshness,
    interruption,
    machine::Purchase,
    offering::Spot,
    ports::{InstanceInfo, Message},
    provider_id,
    services::Services,
};

pub(super) struct Queue {
    services: Arc<Services>,
    name: String,
    url: RwLock<Option<String>>,
}

impl Queue {
    pub fn new(services: Arc<Services>, name: String) -> Self {
        Self {
            services,
            name,
            url: RwLock::default(),
        }
    }

    /// Where the queue is. Looked up when it is first needed, so that a queue that comes later is found.
    async fn url(&self) -> Result<String, AwsError> {
        if let Some(url) = self.url.read().clone() {
            return Ok(url);
        }
        let url = self.services.aws.queue.url(&self.name).await?;
        *self.url.write() = Some(url.clone());
        Ok(url)
    }

    /// What has been announced, as far as it concerns anybody. Messages are looked into side by side: one that takes its
    /// time does not cost the others theirs.
    pub async fn notices(&self) -> Result<Vec<Notice>, AwsError> {
        let url = self.url().await?;
        let received = self.services.aws.queue.receive(&url).await?;
        let read = try_join_all(received.iter().map(|message| self.read(message))).await?;
        Ok(read.into_iter().flatten().collect())
    }

    /// What a message announces. One that concerns nobody is deleted.
    async fn read(&self, message: &Message) -> Result<Option<Notice>, AwsError> {
        match interruption::read(&message.body) {
            Ok(Some(announcement)) => return Ok(self.notice(announcement, message).await),
            Ok(None) => {}
            Err(error) => warn!(%error, "a message of the interruption queue cannot be read"),
        }
        self.delete(&message.receipt).await?;
        Ok(None)
    }

    /// Messages name instances by id; a provider id needs the zone. An instance that EC2 does not have is nobody's
    /// concern; one that it could not be asked about leaves the message in the queue, to be told again.
    async fn notice(&self, announcement: interruption::Announcement, message: &Message) -> Option<Notice> {
        let mut instances = Vec::new();
        for id in &announcement.instances {
            match self.services.instances.get(id, Freshness::Remembered).await {
                Ok(Some(info)) => {
                    self.learn(announcement.kind, &info);
                    instances.push(provider_id::of(&info.zone, &info.id));
                }
                Ok(None) => {}
                Err(error) => {
                    warn!(instance = id, %error, "an announced instance could not be looked up");
                    return None;
                }
            }
        }
        Some(Notice {
            kind: announcement.kind,
            instances,
            sent: message.sent.unwrap_or_else(|| self.services.clock.now()),
            receipt: message.receipt.clone(),
        })
    }

    /// Capacity that is taken back is short: replacements are better sought elsewhere.
    fn learn(&self, kind: NoticeKind, info: &InstanceInfo) {
        match kind {
            NoticeKind::SpotInterrupted => self.services.catalog.shortages(|shortages| {
                let spot = Spot {
                    capacity_type: CapacityType::Spot,
                    instance_type: &info.instance_type,
                    zone: &info.zone,
                };
                shortages.mark(spot, None);
            }),
            NoticeKind::ReservationInterrupted => {
                if let Purchase::Reserved { reservation, .. } = Purchase::of(info, self.services.reserved_capacity) {
                    self.services.resolver.reservations.exhausted(&reservation);
                }
            }
            NoticeKind::InstanceStopped
            | NoticeKind::InstanceTerminated
            | NoticeKind::ScheduledChange
            | NoticeKind::RebalanceRecommended => {}
        }
    }

    pub async fn delete(&self, receipt: &str) -> Result<(), AwsError> {
        let url = self.url().await?;
        self.services.aws.queue.delete(&url, receipt).await
    }
}
