//! Which pods take part in a round.

use scheduler::Round;
use state::View;

use crate::context::Ctx;

/// The pods that need a place now, on the snapshot that they were read from: a pod that binds meanwhile makes us order
/// too little, which the next round mends, rather than too much.
pub fn observe(view: &View, ctx: &Ctx) -> Round {
    let now = ctx.clock.now();
    Round {
        pods: view.snapshot.pods_to_place(now),
        now,
        options: ctx.knobs.solver.clone(),
    }
}
