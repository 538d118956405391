//! At rest, no pod is lost: every workload has as many available pods as it asks for.

use super::{Checker, Moment, Verdict};
use crate::mirror::Key;

pub struct WorkloadsAreWhole;

impl Checker for WorkloadsAreWhole {
    fn name(&self) -> &'static str {
        "workloads are whole"
    }

    fn at_rest(&mut self, moment: &Moment<'_>) -> Verdict {
        let scene = moment.scene;
        let deployments = scene.deployments.all();
        let deployments = deployments.iter().map(|deployment| {
            let status = deployment.status.as_ref();
            let available = status.and_then(|status| status.available_replicas).unwrap_or_default();
            (
                Key::of(&deployment.metadata),
                deployment.spec.replicas.unwrap_or(1),
                available,
            )
        });
        let sets = scene.stateful_sets.all();
        let sets = sets.iter().map(|set| {
            let available = set
                .status
                .as_ref()
                .and_then(|status| status.available_replicas)
                .unwrap_or_default();
            (Key::of(&set.metadata), set.spec.replicas.unwrap_or(1), available)
        });
        let daemons = scene.daemon_sets.all();
        let daemons = daemons.iter().map(|set| {
            let status = set.status.clone().unwrap_or_default();
            (
                Key::of(&set.metadata),
                status.desired_number_scheduled,
                status.number_available.unwrap_or_default(),
            )
        });
        for (key, wanted, available) in deployments.chain(sets).chain(daemons) {
            if available != wanted {
                return Err(format!("{key} has {available} available pods of {wanted}"));
            }
        }
        Ok(())
    }
}
