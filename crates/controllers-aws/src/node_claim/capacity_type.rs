//! Instances whose reservation has ended run on, on demand. Claims and nodes say so soon after.

use std::{collections::BTreeMap, time::Duration};

use api::{
    labels::{self, capacity_type},
    v1::NodeClaim,
};
use async_trait::async_trait;
use controllers::error::StepError;
use k8s_openapi::api::core::v1::Node;
use kube::{Resource, ResourceExt};
use provider_aws::{
    housekeeping::{Labelled, is_to_be_demoted},
    machine::{Purchase, RESERVATION_LABELS},
    provider_id,
};
use state::View;
use tracing::info;

use crate::{AwsCtx, chore::Chore, failed, objects::instance_of};

const EVERY: Duration = Duration::from_secs(60);

pub struct CapacityTypes;

fn says_reserved<K: ResourceExt>(object: &K) -> bool {
    object.labels().get(labels::CAPACITY_TYPE).map(String::as_str) == Some(capacity_type::RESERVED)
}

fn is_stale<K: ResourceExt>(object: &K, purchase: &Purchase) -> bool {
    let labelled = Labelled {
        capacity_type: object.labels().get(labels::CAPACITY_TYPE).map(String::as_str),
        deleting: object.meta().deletion_timestamp.is_some(),
    };
    is_to_be_demoted(&labelled, purchase)
}

fn demoted<K: Resource + Clone>(object: &K) -> K {
    let mut demoted = object.clone();
    let labels = demoted.meta_mut().labels.get_or_insert_default();
    for key in RESERVATION_LABELS {
        labels.remove(key);
    }
    labels.insert(labels::CAPACITY_TYPE.to_owned(), capacity_type::ON_DEMAND.to_owned());
    demoted
}

#[async_trait]
impl Chore for CapacityTypes {
    const NAME: &'static str = "capacityreservation.capacitytype";

    async fn run(&self, aws: &AwsCtx) -> Result<Duration, StepError> {
        let view = aws.ctx.index.view();
        // Where nothing claims to be reserved there is nothing to put right, and EC2 need not be asked.
        let concerns = |view: &View| {
            view.claims.values().any(|claim| says_reserved(&**claim))
                || view.nodes.values().any(|node| says_reserved(&**node))
        };
        if !concerns(&view) {
            return Ok(EVERY);
        }
        let listed = aws.services.instances.list().await;
        let listed = listed.map_err(|error| failed("list its instances", error))?;
        let reserved_capacity = aws.services.reserved_capacity;
        let purchases: BTreeMap<String, Purchase> = listed
            .iter()
            .map(|info| {
                let id = provider_id::of(&info.zone, &info.id).to_string();
                (id, Purchase::of(info, reserved_capacity))
            })
            .collect();
        let view = aws.ctx.index.view();
        for claim in view.claims.values() {
            let Some(id) = instance_of(claim) else { continue };
            let Some(purchase) = purchases.get(id) else { continue };
            if is_stale(&**claim, purchase) {
                aws.ctx.writer.update::<NodeClaim>(claim, &demoted(&**claim)).await?;
                info!(NodeClaim = %claim.name_any(), "the reservation has ended; the instance is on demand");
            }
            for node in view
                .nodes_of(id)
                .into_iter()
                .filter(|node| is_stale(&***node, purchase))
            {
                aws.ctx.writer.update::<Node>(node, &demoted(&**node)).await?;
            }
        }
        Ok(EVERY)
    }
}
