//! Nothing goes wrong, and nothing stays as it is: prices move, spot capacity comes and goes, workloads come in bursts, and
//! the scheduler ranks nodes by rules that the autoscaler does not know.
//!
//! Consolidation has every reason to move pods to and fro here. Each of its commands has to save money at the prices of
//! its moment, moved pods have to run on, and once nothing changes any more there has to be rest.

use std::{sync::Arc, time::Duration};

use clock::VirtualClock;
use jiff::SignedDuration;
use model::{CapacityType, InstanceType};
use operator::settings::Settings;
use provider_sim::{Catalog, Faults as CloudFaults, Interruption, Latency, Market, Shortage};
use serde_json::{Value, json};

use super::{Outcome, RECOVERY, one_of, play, resize};
use crate::{
    binder::Ranking,
    dice::Dice,
    story::{Deployed, HOSTNAME, Pool, daemon_set, deployment, minutes, pool, settled, stateful_set},
    world::{Failure, Setup, World, karpenter_with},
};

/// How often the workloads change, and how long each of these acts lasts.
const ACTS: u32 = 4;
const ACT: Duration = minutes(4);
const ZONES: [&str; 2] = ["test-zone-a", "test-zone-b"];
/// Rest is an hour in which no node comes or goes; it is looked for in steps, and for so many of them.
const REST: Duration = minutes(60);
const LOOK: Duration = minutes(10);
const LOOKS: u32 = 24;

/// See the module's head.
pub struct Restless {
    seed: u64,
    dice: Dice,
}

impl Restless {
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            dice: Dice::seeded(seed).of("restless"),
        }
    }

    pub fn run(&self) -> Outcome {
        let gates = ["SpotToSpotConsolidation=true", "SpotToSpotConsolidation=false"];
        let settings = Settings {
            feature_gates: one_of(self.dice, gates, "gates")
                .parse()
                .expect("gates are written Name=true"),
            ..Settings::default()
        };
        let rankings = [
            Ranking::LeastAllocated,
            Ranking::MostAllocated,
            Ranking::Preferences,
            Ranking::Random,
        ];
        let setup = Setup {
            catalog: catalog(),
            cloud: self.cloud(),
            ranking: one_of(self.dice, rankings, "ranking"),
            ..Setup::seeded(self.seed, karpenter_with(settings))
        };
        play(setup, |world| self.play(world))
    }

    fn play(&self, world: &mut World) -> Result<(), Failure> {
        world.create(json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": "first" }, "value": 1000,
        }));
        for pool in self.pools() {
            world.create(pool);
        }
        let workloads = self.workloads();
        for workload in &workloads {
            world.create(workload.clone());
        }
        for act in 0..ACTS {
            world.try_run_for(ACT)?;
            let dice = self.dice.of("acts").nth(act.into());
            // Bursts: as often as not a workload is at one of its ends.
            let size = one_of(dice, [0, 1, 9, 12, dice.below(8, &["between"])], "size");
            resize(world, one_of(dice, &workloads, "which"), size);
        }
        world.calm();
        world.try_run_until(&settled(), RECOVERY)?;
        self.find_rest(world)?;
        world.try_rest()
    }

    /// Until an hour passes in which no node comes or goes.
    fn find_rest(&self, world: &mut World) -> Result<(), Failure> {
        let mut quiet = Duration::ZERO;
        for _ in 0..LOOKS {
            let before = world.scene().node_claims.keys();
            world.try_run_for(LOOK)?;
            let unchanged = world.scene().node_claims.keys() == before;
            quiet = if unchanged { quiet + LOOK } else { Duration::ZERO };
            if quiet >= REST {
                return Ok(());
            }
        }
        Err(world.failure("nodes still come and go hours after the last change".to_owned()))
    }

    fn pools(&self) -> Vec<Pool> {
        let one = |name: &'static str| {
            let dice = self.dice.of(name);
            let policies = ["WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "Balanced"];
            let mut pool = pool(name)
                .consolidation_policy(one_of(dice, policies, "policy"))
                .consolidate_after(one_of(dice, ["0s", "15s", "1m", "5m"], "after"))
                .budgets(one_of(dice, budgets(), "budgets"));
            if dice.percent(30, &["kinds"]) {
                pool = pool.allow([one_of(dice, [CapacityType::OnDemand, CapacityType::Spot], "kind")]);
            }
            if dice.percent(20, &["zones"]) {
                pool = pool.zones([one_of(dice, ZONES, "zone")]);
            }
            pool
        };
        let mut pools = vec![one("general")];
        if self.dice.percent(50, &["second-pool"]) {
            pools.push(one("other"));
        }
        pools
    }

    fn workloads(&self) -> Vec<Deployed> {
        let dice = self.dice.of("workloads");
        let asks = |name: &str| {
            one_of(
                dice,
                [
                    "300m cpu, 256Mi",
                    "500m cpu, 512Mi",
                    "1 cpu, 1Gi",
                    "2 cpu, 1Gi",
                    "1 cpu, 5Gi",
                ],
                name,
            )
        };
        let mut web = deployment("web")
            .replicas(6)
            .asks(asks("web"))
            .prefers("podAntiAffinity", "web", HOSTNAME);
        if dice.percent(50, &["web-budget"]) {
            web = web.max_unavailable(2);
        }
        let keys = [HOSTNAME, "topology.kubernetes.io/zone"];
        let api = deployment("api")
            .replicas(4)
            .asks(asks("api"))
            .spread_anyway(one_of(dice, keys, "spread"));
        let near = deployment("near").replicas(4).asks(asks("near")).prefers(
            "podAffinity",
            "web",
            one_of(dice, keys, "near-key"),
        );
        let mut batch = deployment("batch").replicas(3).asks(asks("batch"));
        if dice.percent(25, &["kept"]) {
            batch = batch.annotate(
                "karpenter.sh/do-not-disrupt",
                one_of(dice, ["true", "5m"], "protection"),
            );
        }
        let mut workloads = vec![web, api, near, batch];
        if dice.percent(40, &["db"]) {
            workloads.push(stateful_set("db").replicas(3).asks(asks("db")).max_unavailable(1));
        }
        if dice.percent(40, &["agent"]) {
            // Without precedence the pods of others may fill a new node before it comes.
            workloads.push(
                daemon_set("agent")
                    .asks("100m cpu, 64Mi")
                    .pod("priorityClassName", json!("first")),
            );
        }
        workloads
    }

    fn cloud(&self) -> CloudFaults {
        let dice = self.dice.of("cloud");
        let seconds = |least, most| Latency::between(SignedDuration::from_secs(least), SignedDuration::from_secs(most));
        let swing = |choices: [f64; 3], word: &str| one_of(dice, choices, word);
        let interruption = Interruption {
            mean_lifetime: SignedDuration::from_mins(30),
            notice: SignedDuration::from_mins(2),
        };
        let shortage = |act: u32| {
            let dice = dice.of("shortage").nth(act.into());
            let from = VirtualClock::EPOCH + act * ACT + ACT / 4;
            Shortage {
                capacity_type: Some(one_of(dice, [CapacityType::Spot, CapacityType::OnDemand], "kind")),
                zone: Some(one_of(dice, ZONES, "zone").into()),
                from: Some(from),
                until: Some(from + ACT / 2),
                ..Shortage::default()
            }
        };
        CloudFaults {
            launch_latency: seconds(8, 40),
            termination_latency: seconds(2, 15),
            market: Some(Market {
                period: SignedDuration::from_mins(one_of(dice, [2, 5, 11], "period")),
                spot_swing: swing([0.02, 0.2, 0.6], "spot"),
                on_demand_swing: swing([0.0, 0.0, 0.1], "on-demand"),
                sold_out: swing([0.0, 0.1, 0.3], "sold-out"),
                until: None,
            }),
            interruption: dice.percent(25, &["interruption"]).then_some(interruption),
            shortages: if dice.percent(40, &["shortages"]) {
                (0..ACTS).map(shortage).collect()
            } else {
                Vec::new()
            },
            ..CloudFaults::default()
        }
    }
}

/// Few enough types and zones for a storm to be quick, and enough types that spot machines may be exchanged.
fn catalog() -> Catalog {
    let generic = Catalog::generic();
    let small = generic.all_shapes().filter(|shape| {
        let cpu = shape.capacity.get("cpu").as_f64();
        cpu <= 16.0 && shape.name.as_str().ends_with("linux")
    });
    let near = small.map(|shape| {
        let mut shape = InstanceType::clone(shape);
        shape
            .offerings
            .retain(|offering| ZONES.contains(&offering.zone.as_str()));
        Arc::new(shape)
    });
    Catalog::of(near.collect())
}

/// Budgets as users write them: shares, numbers, windows that overlap, and reasons.
fn budgets() -> [Value; 5] {
    [
        json!([{ "nodes": "100%" }]),
        json!([{ "nodes": "10%" }]),
        json!([{ "nodes": "2" }]),
        json!([{ "nodes": "50%" }, { "nodes": "1", "reasons": ["Underutilized"] }]),
        json!([
            { "nodes": "60%" },
            { "nodes": "0", "schedule": "*/20 * * * *", "duration": "6m" },
            { "nodes": "1", "schedule": "*/15 * * * *", "duration": "10m", "reasons": ["Underutilized", "Empty"] },
        ]),
    ]
}
