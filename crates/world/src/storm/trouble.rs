//! Everything goes wrong for a while: requests, machines, launches, the controller itself.

use std::time::Duration;

use clock::VirtualClock;
use jiff::SignedDuration;
use model::CapacityType;
use provider_sim::{Faults as CloudFaults, Interruption, Latency, Shortage};
use serde_json::json;

use super::{Outcome, RECOVERY, one_of, play, resize, wind_down};
use crate::{
    dice::Dice,
    faults::ApiFaults,
    story::{ControllerCrash, Deployed, Pool, daemon_set, deployment, minutes, pool, settled, stateful_set},
    world::{CrashPlan, Failure, Setup, World, karpenter},
};

/// How long things go wrong.
const BAD_TIME: Duration = minutes(6);

/// See the module's head.
pub struct Trouble {
    seed: u64,
    dice: Dice,
}

impl Trouble {
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            dice: Dice::seeded(seed).of("storm"),
        }
    }

    pub fn run(&self) -> Outcome {
        let setup = Setup {
            cloud: self.cloud(),
            api: self.api(),
            crashes: self.crashes(),
            ..Setup::seeded(self.seed, karpenter())
        };
        play(setup, |world| self.play(world))
    }

    fn play(&self, world: &mut World) -> Result<(), Failure> {
        world.create(self.pool());
        let workloads = self.workloads();
        for workload in &workloads {
            world.create(workload.clone());
        }
        for act in 0..6 {
            world.try_run_for(BAD_TIME / 6)?;
            let dice = self.dice.nth(act);
            let workload = one_of(dice, &workloads, "which");
            resize(world, workload, dice.below(9, &["size"]));
            if dice.percent(30, &["crash"]) {
                world.inject(ControllerCrash);
            }
        }
        world.calm();
        // Limits may have kept pods waiting, as they should; without them everything can be placed.
        world.patch_pool("storm", json!({ "spec": { "limits": null } }));
        world.try_run_until(&settled(), RECOVERY)?;
        wind_down(world, &workloads)
    }

    fn pool(&self) -> Pool {
        let dice = self.dice.of("pool");
        let mut pool = pool("storm").consolidate_after(one_of(dice, ["0s", "15s", "60s"], "after"));
        if dice.percent(60, &["policy"]) {
            let policies = ["WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "Balanced"];
            pool = pool
                .consolidation_policy(one_of(dice, policies, "which-policy"))
                .budget(one_of(dice, ["10%", "2", "100%"], "budget"));
        }
        if dice.percent(50, &["kinds"]) {
            pool = pool.allow([CapacityType::OnDemand]);
        }
        if dice.percent(60, &["limit"]) {
            pool = pool.limit("cpu", one_of(dice, ["64", "96", "256"], "cpu"));
        }
        if dice.percent(30, &["grace"]) {
            pool = pool.termination_grace_period(one_of(dice, ["20s", "2m"], "period"));
        }
        if dice.percent(20, &["expiry"]) {
            pool = pool.expire_after(one_of(dice, ["2m", "5m"], "expiry-time"));
        }
        pool
    }

    /// Whether a node that is on its way out goes, whatever its pods say: nodes do not expire, or their wait has an end.
    fn nodes_always_end(&self) -> bool {
        let dice = self.dice.of("pool");
        dice.percent(30, &["grace"]) || !dice.percent(20, &["expiry"])
    }

    /// About twenty pods.
    fn workloads(&self) -> Vec<Deployed> {
        let dice = self.dice.of("workloads");
        let size = |name: &str, least: u64, most: u64| {
            u32::try_from(least + dice.below(most - least + 1, &["size", name])).unwrap_or(1)
        };
        let asks = |name: &str| {
            one_of(
                dice,
                ["500m cpu, 512Mi", "1 cpu, 1Gi", "3 cpu, 2Gi", "1 cpu, 6Gi"],
                name,
            )
        };
        let mut web = deployment("web").replicas(size("web", 4, 8)).asks(asks("web"));
        if dice.percent(50, &["web-budget"]) {
            web = web.max_unavailable(1);
        }
        let mut api = deployment("api").replicas(size("api", 3, 6)).asks(asks("api"));
        if dice.percent(40, &["api-zone"]) {
            api = api.pod("nodeSelector", json!({ "topology.kubernetes.io/zone": "test-zone-b" }));
        } else if dice.percent(40, &["api-arch"]) {
            api = api.pod("nodeSelector", json!({ "kubernetes.io/arch": "arm64" }));
        }
        let mut batch = deployment("batch").replicas(size("batch", 2, 6)).asks(asks("batch"));
        if dice.percent(20, &["batch-kept"]) {
            // Who refuses to leave for ever keeps an expired node for ever.
            let ends = self.nodes_always_end();
            batch = batch.annotate("karpenter.sh/do-not-disrupt", if ends { "true" } else { "2m" });
        }
        let mut workloads = vec![web, api, batch];
        if dice.percent(50, &["db"]) {
            workloads.push(
                stateful_set("db")
                    .replicas(size("db", 1, 3))
                    .asks(asks("db"))
                    .max_unavailable(1),
            );
        }
        if dice.percent(50, &["agent"]) {
            workloads.push(daemon_set("agent").asks("100m cpu, 64Mi"));
        }
        workloads
    }

    fn api(&self) -> ApiFaults {
        if self.dice.percent(15, &["api-calm"]) {
            ApiFaults::default()
        } else {
            ApiFaults::rough()
        }
    }

    fn crashes(&self) -> CrashPlan {
        if self.dice.percent(60, &["crashes"]) {
            CrashPlan::Within(8..150)
        } else {
            CrashPlan::Never
        }
    }

    fn cloud(&self) -> CloudFaults {
        let dice = self.dice.of("cloud");
        let chance = |percent: u64, word: &str, value: f64| if dice.percent(percent, &[word]) { value } else { 0.0 };
        let seconds = |least, most| Latency::between(SignedDuration::from_secs(least), SignedDuration::from_secs(most));
        let notice = SignedDuration::from_secs(one_of(dice, [10, 120], "notice"));
        let new_image = VirtualClock::EPOCH + SignedDuration::from_mins(3);
        let interruption = Interruption {
            mean_lifetime: SignedDuration::from_mins(4),
            notice,
        };
        CloudFaults {
            launch_latency: seconds(1, 60),
            termination_latency: seconds(0, 30),
            launch_failure: chance(40, "launch-failure", 0.2),
            lost_answer: chance(50, "lost-answer", 0.2),
            unanswered: chance(50, "unanswered", 0.1),
            never_joins: chance(30, "never-joins", 0.2),
            image_since: dice.percent(25, &["new-image"]).then_some(new_image),
            interruption: dice.percent(40, &["interruption"]).then_some(interruption),
            shortages: dice
                .percent(30, &["shortage"])
                .then(|| self.shortage())
                .into_iter()
                .collect(),
            market: None,
        }
    }

    fn shortage(&self) -> Shortage {
        let spot = self.dice.percent(50, &["short-of-spot"]);
        Shortage {
            capacity_type: spot.then_some(CapacityType::Spot),
            zone: (!spot).then(|| "test-zone-a".into()),
            ..Shortage::default()
        }
    }
}
