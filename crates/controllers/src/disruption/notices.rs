//! What people are told about nodes that stay, and about those that go.

use api::v1::NodeClaim;
use disruption::{Candidate, Ledger, Stay};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use model::{NodeKey, StateNode, budget::DisruptionReason};
use state::View;

use crate::{
    context::Ctx,
    objects::{about_claim, about_node},
    outbox::{About, Notice},
};

fn abouts(view: &View, machine: &StateNode) -> Vec<About> {
    let claim = match &machine.key {
        NodeKey::Claim(name) => view.claims.named(name.as_str()).map(|claim| about_claim(claim)),
        NodeKey::Node(_) => None,
    };
    let node = machine
        .node_name()
        .and_then(|name| view.nodes.named(name.as_str()))
        .map(|node| about_node(node));
    claim.into_iter().chain(node).collect()
}

pub fn blocked(ctx: &Ctx, view: &View, stay: &Stay) {
    let Some(machine) = view.snapshot.nodes.get(&stay.node) else {
        return;
    };
    for about in abouts(view, machine) {
        ctx.outbox
            .publish(Notice::normal("DisruptionBlocked", about, stay.blocked.to_string()));
    }
}

/// An empty node whose pool never consolidates.
pub fn unconsolidatable(ctx: &Ctx, view: &View, candidate: &Candidate) {
    let message = format!("NodePool {:?} has consolidation disabled", candidate.pool.name);
    for about in abouts(view, &candidate.node) {
        let notice = Notice::normal("Unconsolidatable", about, message.clone());
        ctx.outbox.publish(notice.every(SignedDuration::from_mins(15)));
    }
}

/// The state of every pool's budget, as metrics; and as an event where it is shut.
pub fn budgets(ctx: &Ctx, view: &View, reason: DisruptionReason, now: Timestamp) {
    for (name, page) in Ledger::open(&view.snapshot, reason, now).pages() {
        ctx.metrics
            .disruption
            .budget(name.as_str(), reason, page.allowed, page.disrupting);
        let shut = page.total > 0 && page.allowed == 0;
        if let Some(pool) = view.pools.named(name.as_str()).filter(|_| shut) {
            let about = About::pool(name.as_str(), &pool.uid().unwrap_or_default());
            let message = format!("No allowed disruptions for disruption reason {reason} due to blocking budget");
            let notice = Notice::normal("DisruptionBlocked", about, message);
            ctx.outbox.publish(
                notice
                    .told_apart_by(reason.as_str())
                    .every(SignedDuration::from_mins(1)),
            );
        }
    }
}

pub fn terminating(ctx: &Ctx, claim: &NodeClaim, node: Option<&Node>, reason: DisruptionReason) {
    let notice = |about, kind| {
        Notice::normal("DisruptionTerminating", about, format!("Disrupting {kind}: {reason}"))
            .told_apart_by(reason.as_str())
    };
    ctx.outbox.publish(notice(about_claim(claim), "NodeClaim"));
    if let Some(node) = node {
        ctx.outbox.publish(notice(about_node(node), "Node"));
    }
}
