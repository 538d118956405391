//! Which pods take part in a round.

use model::{Operator, PodKey, Requirements, Snapshot, vocabulary};
use scheduler::Round;

use crate::context::Ctx;

/// A round, and the pods that want none of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub round: Round,
    pub ignored: Vec<PodKey>,
}

/// The pods that need a place now, on the snapshot that they were read from: a pod that binds meanwhile makes us order
/// too little, which the next round mends, rather than too much.
pub fn observe(snapshot: &Snapshot, ctx: &Ctx) -> Asked {
    let now = ctx.clock.now();
    let waiting = snapshot.pods_to_place(now).into_iter();
    let (ignored, pods) = waiting.partition(|pod| opts_out(snapshot, pod));
    Asked {
        round: Round {
            pods,
            now,
            options: ctx.knobs.solver.clone(),
        },
        ignored,
    }
}

/// A pod that insists on a node of no pool keeps away from every node that we could launch: this is how the program's
/// own pods stay off the nodes it manages. Nobody needs to be told.
fn opts_out(snapshot: &Snapshot, pod: &PodKey) -> bool {
    let Some(pod) = snapshot.pods.get(pod) else { return true };
    let asked = Requirements::of_pod(&pod.shape);
    asked.contains(vocabulary::NODEPOOL) && asked.get(vocabulary::NODEPOOL).operator() == Operator::DoesNotExist
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{Pod, Requirement};

    use super::*;
    use model::samples::pod;

    #[test]
    fn a_pod_may_want_no_node_of_ours() {
        let mut snapshot = Snapshot::default();
        let asking = |name: &str, requirement: Requirement| {
            let pod = pod(name);
            let mut shape = (*pod.shape).clone();
            shape.node_selector = vec![requirement];
            Arc::new(Pod {
                shape: Arc::new(shape),
                ..pod
            })
        };
        snapshot.put_pod(asking("out", Requirement::absent(vocabulary::NODEPOOL)));
        snapshot.put_pod(asking("in", Requirement::one_of(vocabulary::NODEPOOL, ["general"])));
        snapshot.put_pod(asking("other", Requirement::absent("team")));
        let out = |name: &str| opts_out(&snapshot, &PodKey::new("default", name));
        assert_eq!(["out", "in", "other"].map(out), [true, false, false]);
    }
}
