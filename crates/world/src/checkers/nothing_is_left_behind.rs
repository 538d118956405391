//! At rest, nothing is half done: no claim without its machine, no node without its claim, no mark of a disruption that
//! does not take place (docs/disruption.md, From decision to deletion).

use api::{
    conditions::{HasConditions, is_true, node_claim},
    labels::taints::DISRUPTED,
};

use super::{Checker, Moment, Verdict};
use crate::mirror::Key;

pub struct NothingIsLeftBehind;

impl Checker for NothingIsLeftBehind {
    fn name(&self) -> &'static str {
        "nothing is left behind"
    }

    fn at_rest(&mut self, moment: &Moment<'_>) -> Verdict {
        let claims = moment.scene.node_claims.all();
        for claim in &claims {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            if claim.metadata.deletion_timestamp.is_some() {
                return Err(format!("claim {name} is still being deleted"));
            }
            if !is_true(claim.conditions(), node_claim::INITIALIZED) {
                return Err(format!("claim {name} never became initialized"));
            }
            let id = claim
                .status
                .as_ref()
                .and_then(|status| status.provider_id.clone())
                .unwrap_or_default();
            let machine = moment.cloud.machine(&id.as_str().into());
            if machine.is_none_or(|machine| !machine.is_live(moment.now)) {
                return Err(format!("claim {name} names {id}, which does not run"));
            }
        }
        for node in moment.scene.nodes.all() {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            let spec = node.spec.as_ref();
            let managed = node
                .metadata
                .labels
                .as_ref()
                .is_some_and(|labels| labels.contains_key(api::labels::NODE_POOL));
            if !managed {
                continue;
            }
            if node.metadata.deletion_timestamp.is_some() {
                return Err(format!("node {name} is still being deleted"));
            }
            let id = spec.and_then(|spec| spec.provider_id.as_deref());
            let named = claims.iter().any(|claim| {
                claim
                    .status
                    .as_ref()
                    .is_some_and(|status| status.provider_id.as_deref() == id)
            });
            if !named {
                return Err(format!("node {name} has no claim"));
            }
            if spec
                .iter()
                .flat_map(|spec| spec.taints.iter().flatten())
                .any(|taint| taint.key == DISRUPTED)
            {
                return Err(format!("node {name} is still marked for a disruption"));
            }
        }
        for pod in moment.scene.pods.all() {
            let node = crate::kubelet::pods::node_of(&pod);
            if node.is_some_and(|node| !moment.scene.nodes.contains(&Key::cluster(node))) {
                return Err(format!(
                    "pod {} is bound to a node that is no more",
                    Key::of(&pod.metadata)
                ));
            }
        }
        Ok(())
    }
}
