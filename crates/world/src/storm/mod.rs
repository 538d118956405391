//! Storms: small worlds in which much happens for a while, each from one seed.
//!
//! - [`Trouble`]: everything goes wrong. Rules hold all the same, and in the end every pod runs.
//! - [`Restless`]: nothing goes wrong, and nothing stays as it is. Nodes do not go to and fro, and in the end there is rest.

mod restless;
mod trouble;

use std::time::Duration;

pub use self::{restless::Restless, trouble::Trouble};
use crate::{
    dice::Dice,
    story::{Deployed, minutes, nothing_runs, settled},
    world::{Failure, Setup, World},
};

/// How long a world may take to come to rest when nothing goes wrong any more. Claims that never register are given up
/// after 15 minutes, and their replacements take their time, too.
const RECOVERY: Duration = minutes(45);

/// How a storm ended.
pub struct Outcome {
    pub verdict: Result<(), Failure>,
    pub timeline: String,
}

fn play(setup: Setup, story: impl FnOnce(&mut World) -> Result<(), Failure>) -> Outcome {
    let mut world = World::new(setup);
    let verdict = story(&mut world);
    Outcome {
        verdict,
        timeline: world.timeline(),
    }
}

/// Workloads go first, then all that they ran on.
fn wind_down(world: &mut World, workloads: &[Deployed]) -> Result<(), Failure> {
    for workload in workloads {
        resize(world, workload, 0);
    }
    world.try_run_until(&nothing_runs(), RECOVERY)?;
    world.try_run_until(&settled(), RECOVERY)?;
    world.try_rest()
}

/// Workloads that run once on every node keep their size.
fn resize(world: &mut World, workload: &Deployed, replicas: u64) {
    if let Some(kind) = workload.scalable() {
        world.scale(kind, workload.name(), u32::try_from(replicas).unwrap_or(u32::MAX));
    }
}

/// # Panics
///
/// When there is nothing to choose from.
fn one_of<T>(dice: Dice, choices: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>, word: &str) -> T {
    let mut choices = choices.into_iter();
    let chosen = dice.below(choices.len() as u64, &[word]);
    let chosen = choices.nth(usize::try_from(chosen).unwrap_or_default());
    chosen.expect("there is something to choose from")
}
