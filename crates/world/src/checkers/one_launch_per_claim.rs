//! One claim never gets two machines.

use std::collections::BTreeMap;

use provider_sim::ledger::Deed;

use super::{Checker, Moment, Verdict};
use crate::mirror::{Change, Seen};

/// Reads the cloud's own books, which know of every launch, also of those whose answer was lost.
#[derive(Default)]
pub struct OneLaunchPerClaim {
    read: usize,
    /// The machine of each launch token.
    machines: BTreeMap<String, String>,
}

impl Checker for OneLaunchPerClaim {
    fn name(&self) -> &'static str {
        "one launch per claim"
    }

    fn saw(&mut self, seen: &Seen, moment: &Moment<'_>) -> Verdict {
        match seen {
            Seen::NodeClaim(Change { old: None, .. } | Change { new: None, .. }) => self.read_on(moment),
            _ => Ok(()),
        }
    }

    fn at_rest(&mut self, moment: &Moment<'_>) -> Verdict {
        self.read_on(moment)
    }
}

impl OneLaunchPerClaim {
    fn read_on(&mut self, moment: &Moment<'_>) -> Verdict {
        let ledger = moment.cloud.ledger();
        let news = ledger.get(self.read..).unwrap_or_default();
        self.read = ledger.len();
        for entry in news {
            match &entry.deed {
                Deed::Launched { token, claim, id, .. } => {
                    if let Some(first) = self.machines.insert(token.clone(), id.to_string()) {
                        return Err(format!("claim {claim} was given {id} after {first}"));
                    }
                }
                Deed::Doubled { claim, id, .. } => {
                    return Err(format!("a second launch for {claim} while it has {id}"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
