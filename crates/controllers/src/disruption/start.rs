//! Begins a command: marks its nodes, creates what takes their place, and only then lets the rest of the program know
//! that they will go.
//!
//! ```text
//!  taint and condition ─► replacements created ─► marked for deletion ─► destinations nominated ─► queue
//!          │ failed              │ refused, or not to be had in time
//!          └──────────┬──────────┘
//!                aborted: what was created goes, the marks are taken back
//! ```
//!
//! Marked earlier, the nodes' pods would be provisioned for a second time while their replacements are being created.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use api::v1::NodeClaim;
use disruption::{Command, Method};
use futures::future::join_all;
use jiff::SignedDuration;
use kube::ResourceExt;
use model::{NodeKey, StateNode};
use scheduler::Launch;
use state::View;
use tokio::time::Instant;
use tracing::error;

use super::{
    VALIDATION_DELAY, heal,
    log::{Line, log},
    mark::mark,
    queue::{Started, Taken, patience},
};
use crate::{
    context::Ctx,
    error::chain,
    metrics::Decision,
    provisioning,
    static_capacity::{Census, Slot},
};

/// How long the creation of a replacement is tried again. Nothing is decided meanwhile, because what is being created is
/// not in the cluster yet; and a decision that has waited for longer than it has to stand before it is validated is
/// better made anew.
const PATIENCE: Duration = VALIDATION_DELAY;

/// `None` when the command could not be begun.
pub async fn start(ctx: &Ctx, view: &View, taken: &Taken, mut command: Command) -> Option<Started> {
    if !taken.take(&command.nodes) {
        return None;
    }
    let begun = Instant::now();
    let line = Line::of(view, &command);
    log!(info, &line, "disrupting node(s)");
    let asked = command.nodes.clone();
    let replacements = match begin(ctx, view, &mut command).await {
        Ok(replacements) => replacements,
        Err(why) => {
            heal::give_back(ctx, &asked, why).await;
            taken.release(&asked);
            return None;
        }
    };
    let going: BTreeSet<&NodeKey> = command.nodes.iter().collect();
    taken.release(asked.iter().filter(|node| !going.contains(node)));
    ctx.index.mark_for_deletion(&command.nodes);
    nominate(ctx, view, &command);
    ctx.metrics
        .disruption
        .decided(&decision(&command), pools(view, &command).iter().map(String::as_str));
    Some(Started {
        deadline: begun + patience(taken.nodes().len()),
        replacements: replacements.iter().map(|claim| claim.name_any().into()).collect(),
        command,
        line,
    })
}

/// Leaves the command with the nodes that could be marked, and answers with what was created in their place; or says why
/// nothing comes of it.
async fn begin(ctx: &Ctx, view: &View, command: &mut Command) -> Result<Vec<NodeClaim>, &'static str> {
    let _held = slots(ctx, command).ok_or("its pool has no room for a replacement")?;
    let marked = marked(ctx, view, command).await;
    // A deletion goes on with the nodes that could be marked. What is to be replaced is replaced as a whole.
    let partial = marked.len() < command.nodes.len();
    if marked.is_empty() || (partial && !command.replacements.is_empty()) {
        return Err("its nodes could not be marked");
    }
    command.nodes = marked;
    let created = replacements(ctx, view, command).await;
    created.ok_or("a replacement could not be created")
}

/// Room under the limit of a static pool, held until the replacement is there: whoever else fills the pool up must not
/// take it meanwhile.
fn slots(ctx: &Ctx, command: &Command) -> Option<Vec<Slot>> {
    if command.method != Method::StaticDrift {
        return Some(Vec::new());
    }
    let slot = |launch: &Launch| {
        let limit = ctx.index.view().snapshot.pools.get(&launch.pool)?.node_limit();
        let there = || Census::of(&ctx.index.view(), &launch.pool).total();
        ctx.slots.reserve(&launch.pool, limit, 1, there).pop()
    };
    command.replacements.iter().map(slot).collect()
}

/// The nodes that could be marked.
async fn marked(ctx: &Ctx, view: &View, command: &Command) -> Vec<NodeKey> {
    let machines: Vec<&Arc<StateNode>> = machines(view, command).collect();
    let results = join_all(machines.iter().map(|machine| mark(ctx, machine, command.reason()))).await;
    let mut marked = Vec::new();
    for (machine, result) in machines.into_iter().zip(results) {
        match result {
            Ok(true) => marked.push(machine.key.clone()),
            Ok(false) => {}
            Err(cause) => {
                error!(NodeClaim = %machine.key, error = %chain(&cause), "could not mark node for disruption");
            }
        }
    }
    marked
}

/// All of them, or none: where one cannot be had, those that were created already are taken back.
async fn replacements(ctx: &Ctx, view: &View, command: &Command) -> Option<Vec<NodeClaim>> {
    let why = command.reason().as_str().to_lowercase();
    let launches = command.replacements.iter();
    let created = join_all(launches.map(|launch| provisioning::create(ctx, view, launch, &why, PATIENCE))).await;
    if created.iter().all(Option::is_some) {
        return Some(created.into_iter().flatten().collect());
    }
    for claim in created.iter().flatten() {
        if let Err(cause) = ctx.writer.delete(claim).await {
            error!(NodeClaim = %claim.name_any(), error = %chain(&cause), "could not delete the replacement of a command that was given up");
        }
    }
    None
}

/// The machines that the pods are expected on are left alone until they have arrived.
fn nominate(ctx: &Ctx, view: &View, command: &Command) {
    let window = SignedDuration::try_from(ctx.knobs.nomination()).unwrap_or(SignedDuration::MAX);
    let until = ctx.clock.now().saturating_add(window).unwrap_or(jiff::Timestamp::MAX);
    let destinations = command.placements.iter().map(|placement| &placement.node);
    ctx.index.nominate(destinations, until);
    for placement in &command.placements {
        provisioning::tell_placed(ctx, &view.snapshot, placement);
    }
}

/// How metrics know a command.
pub fn decision(command: &Command) -> Decision {
    Decision {
        decision: command.decision(),
        reason: command.reason().as_str().to_lowercase(),
        consolidation_type: command.consolidation_type(),
    }
}

fn machines<'a>(view: &'a View, command: &'a Command) -> impl Iterator<Item = &'a Arc<StateNode>> {
    command.nodes.iter().filter_map(|key| view.snapshot.nodes.get(key))
}

fn pools(view: &View, command: &Command) -> BTreeSet<String> {
    let pools = machines(view, command).filter_map(|machine| machine.pool());
    pools.map(|pool| pool.as_str().to_owned()).collect()
}
