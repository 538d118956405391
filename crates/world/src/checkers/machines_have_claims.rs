//! At rest, every machine that runs has a claim that names it.

use super::{Checker, Moment, Verdict};

pub struct MachinesHaveClaims;

impl Checker for MachinesHaveClaims {
    fn name(&self) -> &'static str {
        "machines have claims"
    }

    fn at_rest(&mut self, moment: &Moment<'_>) -> Verdict {
        let claims = moment.scene.node_claims.all();
        for machine in moment.cloud.live() {
            let named = claims.iter().any(|claim| {
                let id = claim.status.as_ref().and_then(|status| status.provider_id.as_deref());
                id == Some(machine.provider_id.as_str())
            });
            if !named {
                return Err(format!("machine {} runs and no claim names it", machine.provider_id));
            }
        }
        Ok(())
    }
}
