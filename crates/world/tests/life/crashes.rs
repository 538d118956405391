//! The controller dies at every step of a launch and of a termination.
//!
//! Every request to the API server and every call to the cloud is two steps at which it can die: before it has its
//! effect, and after it. Between two steps nothing can be seen from outside, so these are all the places there are. A
//! story is told once without a crash to count its steps, and then once for each of them. In every telling the rules of
//! lifecycle.md 18 are looked at after each change, and in the end nothing may be leaked, doubled or lost.

use std::{ops::RangeInclusive, sync::Mutex, thread};

use kube::ResourceExt;
use model::CapacityType::OnDemand;
use operator::settings::{FeatureGates, Settings};
use provider_sim::ledger::Deed;
use serde_json::json;
use world::{
    story::{
        Deployed, InsufficientCapacity, KubeletHangs, MachineVanishes, SpotInterruption, deployment, minutes,
        nothing_runs, pods, pool, seconds, settled,
    },
    world::{CrashPlan, Failure, Setup, World, karpenter_with},
};

use super::{claim_path, gone, node_path, web};

/// What happens before the steps that count, what happens while they do, and how many machines that may take.
struct Story {
    before: fn(&mut World),
    plot: fn(&mut World) -> Result<(), Failure>,
    launches: RangeInclusive<usize>,
}

impl Story {
    fn world(plan: CrashPlan) -> World {
        let settings = Settings {
            feature_gates: FeatureGates {
                node_repair: true,
                ..FeatureGates::default()
            },
            ..Settings::default()
        };
        World::new(Setup {
            crashes: plan,
            ..Setup::seeded(11, karpenter_with(settings))
        })
    }

    /// The steps of the plot, counted in a life without a crash.
    fn steps(&self) -> RangeInclusive<u64> {
        let mut world = Self::world(CrashPlan::Never);
        (self.before)(&mut world);
        let first = world.controller().steps() + 1;
        let told = (self.plot)(&mut world).and_then(|()| self.ends_well(&mut world));
        told.unwrap_or_else(|failure| panic!("without a crash: {failure}"));
        first..=world.controller().steps()
    }

    fn ends_well(&self, world: &mut World) -> Result<(), Failure> {
        world.try_run_until(&settled(), minutes(30))?;
        world.try_rest()?;
        let launched = |entry: &&provider_sim::ledger::Entry| matches!(entry.deed, Deed::Launched { .. });
        let launches = world.cloud().ledger().iter().filter(launched).count();
        if self.launches.contains(&launches) {
            return Ok(());
        }
        Err(Failure {
            seed: 11,
            what: format!("{launches} machines were launched where {:?} are enough", self.launches),
            tail: world.timeline(),
        })
    }

    fn told_with_a_crash_at(&self, step: u64) -> Result<(), Failure> {
        let mut world = Self::world(CrashPlan::Once(step));
        (self.before)(&mut world);
        (self.plot)(&mut world)?;
        self.ends_well(&mut world)
    }

    /// Tells the story with a crash at each of its steps.
    #[track_caller]
    fn survives_every_crash(&self, at_least: usize) {
        let steps = self.steps();
        let count = steps.clone().count();
        assert!(count >= at_least, "the plot has only {count} steps");
        let next = Mutex::new(steps);
        let failures = Mutex::new(Vec::new());
        let workers = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        let step = next.lock().expect("no worker panics with the lock").next();
                        let Some(step) = step else { return };
                        if let Err(failure) = self.told_with_a_crash_at(step) {
                            failures
                                .lock()
                                .expect("no worker panics with the lock")
                                .push((step, failure));
                        }
                    }
                });
            }
        });
        let mut failures = failures.into_inner().expect("no worker panics with the lock");
        failures.sort_by_key(|(step, _)| *step);
        if let Some((step, failure)) = failures.first() {
            let steps: Vec<u64> = failures.iter().map(|(step, _)| *step).collect();
            panic!("of {count} crashes these end badly: {steps:?}\nthe one at step {step}: {failure}");
        }
    }
}

fn at_rest_with_a_pool(world: &mut World) {
    world.create(pool("general").consolidate_after("Never"));
    world.run_for(seconds(5));
}

/// Three pods on one node that nobody consolidates, with a budget of one.
fn three_pods_on_a_node(world: &mut World) {
    at_rest_with_a_pool(world);
    world.create(web(3).max_unavailable(1));
    world.run_until(pods("web").running(3), minutes(5));
    assert_eq!(world.scene().nodes.len(), 1);
    // What followed the start has been written down.
    world.run_for(seconds(45));
}

/// Three pods, each on a node of its own.
fn three_apart() -> Deployed {
    deployment("web").replicas(3).asks("1 cpu").apart()
}

fn name(world: &World) -> String {
    world.scene().nodes.all()[0].name_any()
}

fn replaced(world: &mut World, old: &str) -> Result<(), Failure> {
    world.try_run_until(&gone(old), minutes(40))?;
    world.try_run_until(&pods("web").running(3), minutes(20))
}

fn the_claim_is_deleted(world: &mut World) -> Result<(), Failure> {
    let old = name(world);
    let claim = world.scene().node_claims.all()[0].clone();
    world.delete_at(&claim_path(&claim));
    replaced(world, &old)
}

#[test]
fn a_launch_survives_a_crash_at_every_step() {
    let story = Story {
        before: at_rest_with_a_pool,
        plot: |world| {
            world.create(web(3));
            world.try_run_until(&pods("web").running(3), minutes(20))
        },
        launches: 1..=1,
    };
    story.survives_every_crash(20);
}

/// Several claims in one round: a crash in the middle of their creation leaves the rest to the next life.
#[test]
fn a_wave_of_launches_survives_a_crash_at_every_step() {
    let story = Story {
        before: at_rest_with_a_pool,
        plot: |world| {
            world.create(three_apart());
            world.try_run_until(&pods("web").running(3), minutes(20))
        },
        launches: 3..=3,
    };
    story.survives_every_crash(50);
}

/// A launch that is refused: the claim goes, and another is made when there is capacity again.
#[test]
fn a_refused_launch_survives_a_crash_at_every_step() {
    let story = Story {
        before: at_rest_with_a_pool,
        plot: |world| {
            world.inject(InsufficientCapacity(None));
            world.create(web(3));
            world.try_run_for(seconds(40))?;
            world.calm_cloud();
            world.try_run_until(&pods("web").running(3), minutes(20))
        },
        launches: 1..=1,
    };
    story.survives_every_crash(20);
}

#[test]
fn the_end_of_a_claim_survives_a_crash_at_every_step() {
    let story = Story {
        before: three_pods_on_a_node,
        plot: the_claim_is_deleted,
        launches: 2..=2,
    };
    story.survives_every_crash(50);
}

/// The same with a deadline, which is written down before anything else happens, and pods that will not leave.
#[test]
fn the_end_of_a_claim_with_a_deadline_survives_a_crash_at_every_step() {
    let story = Story {
        before: |world| {
            world.create(
                pool("general")
                    .consolidate_after("Never")
                    .termination_grace_period("40s"),
            );
            world.run_for(seconds(5));
            world.create(web(3).annotate("karpenter.sh/do-not-disrupt", "true"));
            world.run_until(pods("web").running(3), minutes(5));
            world.run_for(seconds(45));
        },
        plot: the_claim_is_deleted,
        launches: 2..=2,
    };
    story.survives_every_crash(40);
}

#[test]
fn the_end_of_a_node_survives_a_crash_at_every_step() {
    let story = Story {
        before: three_pods_on_a_node,
        plot: |world| {
            let old = name(world);
            let node = world.scene().nodes.all()[0].clone();
            world.delete_at(&node_path(&node));
            replaced(world, &old)
        },
        launches: 2..=2,
    };
    story.survives_every_crash(50);
}

#[test]
fn an_interruption_survives_a_crash_at_every_step() {
    let story = Story {
        before: three_pods_on_a_node,
        plot: |world| {
            let old = name(world);
            world.inject(SpotInterruption::of(&old));
            replaced(world, &old)
        },
        // A controller that is down for a while may find the machine taken before its drain is over.
        launches: 2..=2,
    };
    story.survives_every_crash(50);
}

#[test]
fn a_repair_survives_a_crash_at_every_step() {
    let story = Story {
        before: |world| {
            three_pods_on_a_node(world);
            let old = name(world);
            world.inject(KubeletHangs(&old));
            // Its pods have been taken for lost and run elsewhere.
            world.run_for(minutes(10));
        },
        plot: |world| {
            let old = world
                .scene()
                .nodes
                .all()
                .iter()
                .min_by_key(|node| node.creation_timestamp().map(|time| time.0))
                .map(|node| node.name_any())
                .unwrap_or_default();
            replaced(world, &old)
        },
        launches: 2..=2,
    };
    story.survives_every_crash(10);
}

/// Pods go, their node goes, nothing is left.
#[test]
fn the_way_back_to_nothing_survives_a_crash_at_every_step() {
    let story = Story {
        before: |world| {
            world.create(pool("general").consolidate_after("30s"));
            world.run_for(seconds(5));
            world.create(web(3));
            world.run_until(pods("web").running(3), minutes(5));
            world.run_for(seconds(45));
        },
        plot: |world| {
            world.scale("Deployment", "web", 0);
            world.try_run_until(&nothing_runs(), minutes(40))
        },
        launches: 1..=1,
    };
    story.survives_every_crash(30);
}

/// A drifted node is exchanged: a crash leaves marks, a replacement on its way, or a claim that is being deleted.
#[test]
fn an_exchange_of_a_drifted_node_survives_a_crash_at_every_step() {
    let story = Story {
        before: three_pods_on_a_node,
        plot: |world| {
            let old = name(world);
            let labels = json!({ "generation": "two" });
            world.patch_pool(
                "general",
                json!({ "spec": { "template": { "metadata": { "labels": labels } } } }),
            );
            replaced(world, &old)
        },
        launches: 2..=2,
    };
    story.survives_every_crash(50);
}

/// A node that is too large is exchanged for a smaller one, after a second look.
#[test]
fn an_exchange_for_a_cheaper_node_survives_a_crash_at_every_step() {
    let story = Story {
        before: |world| {
            let large = pool("general").instance_types(["c-16x-amd64-linux"]).allow([OnDemand]);
            world.create(
                large
                    .consolidation_policy("WhenEmptyOrUnderutilized")
                    .consolidate_after("Never"),
            );
            world.run_for(seconds(5));
            world.create(web(3).max_unavailable(1));
            world.run_until(pods("web").running(3), minutes(5));
            world.run_for(seconds(45));
        },
        plot: |world| {
            let old = name(world);
            let values = ["c-16x-amd64-linux", "c-4x-amd64-linux"];
            let types = json!({ "key": "node.kubernetes.io/instance-type", "operator": "In", "values": values });
            let paid = json!({ "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"] });
            world.patch_pool(
                "general",
                json!({ "spec": {
                "template": { "spec": { "requirements": [types, paid] } },
                "disruption": { "consolidateAfter": "30s" },
            } }),
            );
            replaced(world, &old)
        },
        // A replacement that a crash leaves behind takes no pods by choice until it has settled, so there may be another.
        launches: 2..=3,
    };
    story.survives_every_crash(50);
}

/// Several empty nodes go by one command.
#[test]
fn the_end_of_several_nodes_survives_a_crash_at_every_step() {
    let story = Story {
        before: |world| {
            world.create(pool("general").consolidate_after("30s").budget("100%"));
            world.run_for(seconds(5));
            world.create(three_apart());
            world.run_until(pods("web").running(3), minutes(5));
            world.run_for(seconds(45));
        },
        plot: |world| {
            world.scale("Deployment", "web", 0);
            world.try_run_until(&nothing_runs(), minutes(40))
        },
        launches: 3..=3,
    };
    story.survives_every_crash(50);
}

/// The cloud loses a machine: its claim is collected and its pods move.
#[test]
fn a_lost_machine_survives_a_crash_at_every_step() {
    let story = Story {
        before: three_pods_on_a_node,
        plot: |world| {
            let old = name(world);
            world.inject(MachineVanishes(&old));
            replaced(world, &old)
        },
        launches: 2..=2,
    };
    story.survives_every_crash(20);
}
