//! Claims are made, and machines that have one go.

use api::{Stored, labels, v1::NodeClaim, v1alpha5::Machine};
use controllers::{
    error::StepError,
    writer::{ApiError, ApiFailure},
};
use kube::ResourceExt;
use serde_json::Value;
use state::View;
use tracing::{info, warn};

use super::decide::{self, Step};
use crate::LegacyCtx;

pub async fn take_over(legacy: &LegacyCtx, view: &View, machine: &Stored<Machine>) -> Result<(), StepError> {
    let name = machine.name_any();
    match decide::machine(machine, view) {
        Step::Wait => Ok(()),
        Step::Adopt { pool, instance } => {
            let book = legacy.book(view, &[machine.document()]);
            let Some(pool) = view.pools.named(&pool) else {
                return Ok(());
            };
            let converted = book.claims.get(&name);
            let claim =
                converted.and_then(|claim| decide::claim_of_machine(claim, pool, &instance, has_started(machine)));
            let Some(claim) = claim else {
                warn!(Machine = name, "the machine cannot be read and is left as it is");
                return Ok(());
            };
            create(legacy, &claim, &instance).await?;
            Ok(())
        }
        Step::Remove => remove(legacy, machine).await,
    }
}

pub async fn take_in(legacy: &LegacyCtx, view: &View, name: &str) -> Result<(), StepError> {
    let Some(node) = view.nodes.named(name) else {
        return Ok(());
    };
    let Some((pool, instance)) = decide::forsaken(node, view) else {
        return Ok(());
    };
    let Some(pool) = view.pools.named(&pool) else {
        return Ok(());
    };
    let claim = decide::claim_of_node(node, pool, &instance);
    create(legacy, &claim, &instance).await?;
    Ok(())
}

async fn create(legacy: &LegacyCtx, claim: &NodeClaim, instance: &str) -> Result<(), ApiError> {
    match legacy.ctx.writer.create(claim).await {
        Ok(created) => {
            info!(NodeClaim = %created.name_any(), instance, "adopted an instance of the time of Provisioners");
            Ok(())
        }
        // Its name tells the instance: an earlier attempt was heard after all.
        Err(error) if error.failure == ApiFailure::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn has_started(machine: &Stored<Machine>) -> bool {
    let listed = machine.data.pointer("/status/conditions").and_then(Value::as_array);
    let mut listed = listed.into_iter().flatten();
    listed.any(|one| one["type"] == "MachineInitialized" && one["status"] == "True")
}

/// Without its finalizer nobody takes the end of the machine for that of its instance. If it was on its way out, so is
/// the claim that answers for the instance now.
async fn remove(legacy: &LegacyCtx, machine: &Stored<Machine>) -> Result<(), StepError> {
    let writer = &legacy.ctx.writer;
    if machine.metadata.deletion_timestamp.is_some()
        && let Some(claim) = legacy.ctx.index.view().claims.named(&machine.name_any())
    {
        writer.delete(&**claim).await?;
    }
    let mut released = machine.clone();
    if let Some(finalizers) = &mut released.metadata.finalizers {
        finalizers.retain(|finalizer| finalizer != labels::finalizers::TERMINATION);
    }
    let stored = writer.update(machine, &released).await?;
    writer.delete(&stored).await?;
    info!(Machine = %machine.name_any(), "its instance has a claim; the machine goes");
    Ok(())
}
