//! Rules that must hold, looked at after every change and once more when things have calmed down.
//!
//! Each file is one rule. A checker sees the whole history in the API server's order: every change of an object, every
//! request of the controller and every call to the cloud. *Safety* is checked all the time, also while faults strike;
//! *liveness* only at rest, when the faults have stopped and nothing moves any more.

mod claims_have_owners;
mod deletions_are_gentle;
mod disruption_within_budgets;
mod drain_order;
mod end_in_order;
mod evictions_leave_enough;
mod exchanges_save_money;
mod finalizers_come_first;
mod limits_hold;
mod machines_have_claims;
mod moved_pods_run_on;
mod nothing_is_left_behind;
mod one_launch_per_claim;
mod placements_are_legal;
mod protected_nodes_stay;
mod rest_lasts;
mod workloads_are_whole;

use api::{
    conditions::{self, HasConditions, node_claim as condition},
    v1::NodeClaim,
};
use jiff::Timestamp;
use provider_sim::{Catalog, SimCloud};

use crate::{
    history::Deed,
    mirror::{Mirror, Seen},
};

/// What a rule is judged on.
pub struct Moment<'a> {
    /// The cluster exactly as it was at this point of its history.
    pub scene: &'a Mirror,
    pub cloud: &'a SimCloud,
    /// What the cloud sells, at listed prices.
    pub catalog: &'a Catalog,
    pub now: Timestamp,
}

/// What was broken, in words.
pub type Verdict = Result<(), String>;

pub trait Checker: Send {
    fn name(&self) -> &'static str;

    /// An object changed; the scene has the change already.
    fn saw(&mut self, _: &Seen, _: &Moment<'_>) -> Verdict {
        Ok(())
    }

    /// The controller did something.
    fn called(&mut self, _: &Deed, _: &Moment<'_>) -> Verdict {
        Ok(())
    }

    /// The world has something to tell that no object shows.
    fn noted(&mut self, _subject: &str, _: &Moment<'_>) {}

    /// Nothing moves any more, and nothing keeps it from moving.
    fn at_rest(&mut self, _: &Moment<'_>) -> Verdict {
        Ok(())
    }
}

/// Why a claim is marked for disruption, if it is.
fn disruption_reason(claim: &NodeClaim) -> Option<&str> {
    let found = conditions::find(claim.conditions(), condition::DISRUPTION_REASON);
    found.map(|found| found.reason.as_str())
}

/// All rules.
pub fn all() -> Vec<Box<dyn Checker>> {
    vec![
        Box::new(claims_have_owners::ClaimsHaveOwners),
        Box::new(deletions_are_gentle::DeletionsAreGentle),
        Box::new(disruption_within_budgets::DisruptionWithinBudgets::default()),
        Box::new(drain_order::DrainOrder),
        Box::new(end_in_order::EndInOrder::default()),
        Box::new(evictions_leave_enough::EvictionsLeaveEnough::default()),
        Box::new(exchanges_save_money::ExchangesSaveMoney::default()),
        Box::new(finalizers_come_first::FinalizersComeFirst),
        Box::new(limits_hold::LimitsHold::default()),
        Box::new(machines_have_claims::MachinesHaveClaims),
        Box::new(moved_pods_run_on::MovedPodsRunOn::default()),
        Box::new(nothing_is_left_behind::NothingIsLeftBehind),
        Box::new(one_launch_per_claim::OneLaunchPerClaim::default()),
        Box::new(placements_are_legal::PlacementsAreLegal::default()),
        Box::new(protected_nodes_stay::ProtectedNodesStay),
        Box::new(rest_lasts::RestLasts::default()),
        Box::new(workloads_are_whole::WorkloadsAreWhole),
    ]
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub checker: &'static str,
    pub at: Timestamp,
    pub what: String,
}

/// Every rule over one history.
pub struct Jury {
    checkers: Vec<Box<dyn Checker>>,
    pub violations: Vec<Violation>,
}

impl Default for Jury {
    fn default() -> Self {
        Self {
            checkers: all(),
            violations: Vec::new(),
        }
    }
}

impl Jury {
    pub fn saw(&mut self, seen: &Seen, moment: &Moment<'_>) {
        self.ask(moment, |checker| checker.saw(seen, moment));
    }

    pub fn called(&mut self, deed: &Deed, moment: &Moment<'_>) {
        self.ask(moment, |checker| checker.called(deed, moment));
    }

    pub fn noted(&mut self, subject: &str, moment: &Moment<'_>) {
        for checker in &mut self.checkers {
            checker.noted(subject, moment);
        }
    }

    pub fn at_rest(&mut self, moment: &Moment<'_>) {
        self.ask(moment, |checker| checker.at_rest(moment));
    }

    fn ask(&mut self, moment: &Moment<'_>, question: impl Fn(&mut dyn Checker) -> Verdict) {
        for checker in &mut self.checkers {
            if let Err(what) = question(&mut **checker) {
                self.violations.push(Violation {
                    checker: checker.name(),
                    at: moment.now,
                    what,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
