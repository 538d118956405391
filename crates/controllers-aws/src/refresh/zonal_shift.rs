//! Zones that the cluster is shifted out of, and who is told.

use std::{collections::BTreeSet, time::Duration};

use api::{
    aws::EC2NodeClass,
    labels::{self, aws as aws_labels},
};
use async_trait::async_trait;
use controllers::{
    error::StepError,
    outbox::{About, Notice},
};
use model::pool::Pool;
use parking_lot::Mutex;
use provider_aws::{NODE_CLASS, class_view};
use state::View;

use crate::{AwsCtx, chore::Chore, failed, objects::class};

const EVERY: Duration = Duration::from_secs(30);

#[derive(Default)]
pub struct ZonalShift {
    /// The ids of the zones that people have been told about.
    told: Mutex<BTreeSet<String>>,
}

impl ZonalShift {
    fn tell(&self, aws: &AwsCtx, view: &View, zone: &str, is_shifted: bool) {
        for pool in view.snapshot.pools.values() {
            let own = NODE_CLASS.serves(&pool.template.class);
            let Some(class) = own.then(|| class(view, &pool.template.class.name)).flatten() else {
                continue;
            };
            if !may_use(pool, &class, zone) {
                continue;
            }
            let about = About::pool(pool.name.as_str(), &pool.uid);
            let notice = match is_shifted {
                true => {
                    let message = format!("The cluster is shifted out of zone {zone}; nothing is launched there");
                    Notice::warning("ZonalShiftActive", about, message)
                }
                false => {
                    let message = format!("The cluster is back in zone {zone}");
                    Notice::normal("ZonalShiftCleared", about, message)
                }
            };
            aws.ctx.outbox.publish(notice.told_apart_by(zone));
        }
    }
}

/// Whether the pool could launch into the zone: its class has a subnet there, and it asks for no other zone.
fn may_use(pool: &Pool, class: &EC2NodeClass, zone_id: &str) -> bool {
    let zones = class_view::zones(class);
    let Some(zone) = zones.iter().find(|zone| zone.zone_id.as_deref() == Some(zone_id)) else {
        return false;
    };
    let requirements = &pool.template.requirements;
    requirements.get(labels::ZONE).has(&zone.zone) && requirements.get(aws_labels::ZONE_ID).has(zone_id)
}

#[async_trait]
impl Chore for ZonalShift {
    const NAME: &'static str = "zonalshift";

    async fn run(&self, aws: &AwsCtx) -> Result<Duration, StepError> {
        let shifts = &aws.services.zonal_shifts;
        let refreshed = shifts.refresh().await;
        refreshed.map_err(|error| failed("tell zonal shifts", error))?;
        let now = shifts.shifted();
        let before = std::mem::replace(&mut *self.told.lock(), now.clone());
        let view = aws.ctx.index.view();
        for zone in now.symmetric_difference(&before) {
            self.tell(aws, &view, zone, now.contains(zone));
        }
        Ok(EVERY)
    }
}
