//! What people are told about nodes that are ill and stay.

use api::v1::NodePool;
use jiff::SignedDuration;
use kube::ResourceExt;

use super::observe::View;
use crate::{
    objects::{about_claim, about_node},
    outbox::{About, Notice},
};

/// The block lasts for as long as the illness does; telling of it more often helps nobody.
const EVERY: SignedDuration = SignedDuration::from_mins(15);

/// On the node, on its claim and, where a pool is the ward, on the pool.
pub fn blocked(view: &View, pool: Option<&NodePool>) -> Vec<Notice> {
    let ward = &view.ward;
    let place = if ward.pool.is_some() { "nodepool" } else { "cluster" };
    let message = format!(
        "more than 20% nodes are unhealthy in the {place} ({} of {}), so none of them is replaced; \
         look for a common cause",
        ward.ill, ward.nodes
    );
    let of_pool = pool.map(|pool| About::pool(&pool.name_any(), &pool.uid().unwrap_or_default()));
    let told = [about_node(&view.node), about_claim(&view.claim)]
        .into_iter()
        .chain(of_pool);
    told.map(|about| Notice::warning("NodeRepairBlocked", about, message.clone()).every(EVERY))
        .collect()
}
