//! What holds for every snapshot.

use model::{Requirement, vocabulary};
use proptest::prelude::*;

use crate::{MinValuesPolicy, Options, Plan, PreferencePolicy, Round, Violation, audit, guard, situation, solve};

const KINDS: [&str; 5] = ["small", "medium", "large", "arm", "gpu"];

fn pick(options: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(options)
}

/// Between none and two of these words.
fn words(options: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(pick(options), 0..=2).prop_map(|words| words.join(" "))
}

fn types() -> impl Strategy<Value = String> {
    let extras = [
        "a/spot",
        "b/spot",
        "a/on-demand reserve=r1/a/1",
        "b/on-demand reserve=r1/a/2 reserve=r2/b/1",
    ];
    let sold_out = prop::collection::vec(prop::sample::select(extras.to_vec()), 5);
    sold_out.prop_map(|sold_out| {
        let sizes = [
            "cpu=2 memory=4Gi",
            "cpu=4 memory=8Gi pods=5",
            "cpu=16 memory=64Gi",
            "cpu=8 memory=32Gi arch=arm64",
            "cpu=8 memory=32Gi has:nvidia.com/gpu=2",
        ];
        let lines = KINDS.iter().zip(sizes).zip(sold_out).enumerate();
        lines
            .map(|(index, ((name, size), out))| format!("type {name} {size} price=0.{index}1 soldout={out}\n"))
            .collect()
    })
}

fn pools() -> impl Strategy<Value = String> {
    let pool = (
        0..3i32,
        words(&[
            "zones=a",
            "where=arch:In:amd64",
            "where=tier:In:gold|silver",
            "where=type:Exists::2",
            "sell=on-demand",
            "sell=spot,on-demand",
            "where=rack:In:1|2",
        ]),
        words(&[
            "limit:cpu=20",
            "limit:memory=40Gi",
            "limit:nodes=2",
            "taints=gpu:NoSchedule",
            "taints=slow:PreferNoSchedule",
        ]),
        pick(&["", "", "", "notready", "static"]),
    );
    prop::collection::vec(pool, 1..4).prop_map(|pools| {
        let lines = pools.iter().enumerate();
        lines
            .map(|(i, (weight, a, b, c))| format!("pool p{i} weight={weight} {a} {b} {c}\n"))
            .collect()
    })
}

fn machines() -> impl Strategy<Value = String> {
    let machine = (
        pick(&["node", "claim"]),
        pick(&[
            "cpu=2 memory=4Gi type=small",
            "cpu=8 memory=16Gi",
            "types=small,large",
            "types=medium zones=a",
            "cpu=1 memory=1Gi pods=3",
        ]),
        words(&[
            "pool=p0",
            "zone=a",
            "zone=b",
            "label:tier=gold",
            "booting",
            "leaving",
            "taints=gpu:NoSchedule",
            "label:rack=1",
            "attach:ebs=1",
            "cordoned",
        ]),
    );
    prop::collection::vec(machine, 0..6).prop_map(|machines| {
        let lines = machines.iter().enumerate();
        lines
            .map(|(i, (kind, size, extra))| {
                // A claim without a pool would be nobody's, and a node has resources.
                let size = if *kind == "node" && size.starts_with("types") {
                    "cpu=4 memory=4Gi"
                } else {
                    size
                };
                let pool = if *kind == "claim" && !extra.contains("pool=") {
                    "pool=p0"
                } else {
                    ""
                };
                format!("{kind} m{i} {size} {extra} {pool}\n")
            })
            .collect()
    })
}

const POD_WORDS: &[&str] = &[
    "select=zone:In:a",
    "select=zone:NotIn:a",
    "select=tier:In:gold",
    "select=tier:DoesNotExist",
    "select=arch:In:arm64",
    "term=zone:In:x term=zone:In:b",
    "tolerates=gpu",
    "port=8080",
    "has:nvidia.com/gpu=1",
    "select=type:In:small|large",
];

/// Rules about neighbours, preferences and storage. The labels are those that pods have, so that rules meet somebody.
const SOCIAL_WORDS: &[&str] = &[
    "spread=zone:app=x",
    "spread=zone:2:app=x:min2",
    "spread=zone:app=y:anyway",
    "spread=host:app=x",
    "spread=host:3",
    "spread=rack:app=x:heed-taints",
    "spread=capacity:app=y:any-node",
    "spread=zone:app=x:like-rev",
    "near=zone:app=x",
    "near=host:app=y",
    "near=zone:app=y:in-any",
    "near=rack:app=x",
    "apart=host:app=x",
    "apart=zone:app=y",
    "apart=host:app=y:in-other",
    "apart=arch:app=x",
    "prefer=9*zone:In:b",
    "prefer=5*tier:In:gold prefer=1*arch:In:arm64",
    "wish-near=5*zone:app=y",
    "wish-apart=7*host:app=x",
    "wish-apart=1*zone:app=x wish-near=2*host:app=y",
    "volume=wherever",
    "volume=in-b",
    "volume=either",
    "scratch=tmp",
];

const STORAGE: &str = "
    class fast driver=ebs default
    class zonal driver=ebs at=zone:In:a at=zone:In:b
    volume there driver=ebs at=zone:In:b
    pvc wherever class=fast
    pvc in-b volume=there
    pvc either class=zonal
    namespace other label:team=blue
";

fn pods(social: &'static [&'static str]) -> impl Strategy<Value = String> {
    let pod = (
        pick(&[
            "cpu=100m",
            "cpu=500m memory=1Gi",
            "cpu=1 memory=4Gi",
            "cpu=3 memory=2Gi",
            "cpu=12 memory=8Gi",
            "cpu=40",
        ]),
        words(POD_WORDS),
        words(social),
        pick(&[
            "",
            "label:app=x",
            "label:app=x label:rev=1",
            "label:app=y",
            "label:app=y in=other",
        ]),
        1..6usize,
        pick(&["", "", "", "on=m0", "on=m1 again"]),
    );
    prop::collection::vec(pod, 0..8).prop_map(|pods| {
        let lines = pods.iter().enumerate();
        lines
            .map(|(i, (size, extra, social, labels, count, on))| {
                format!("pod w{i} {size} {extra} {social} {labels} count={count} {on}\n")
            })
            .collect()
    })
}

fn daemons() -> impl Strategy<Value = String> {
    let daemon = (pick(&["cpu=100m", "cpu=1 memory=1Gi"]), words(POD_WORDS));
    prop::collection::vec(daemon, 0..3).prop_map(|daemons| {
        daemons
            .iter()
            .enumerate()
            .map(|(i, (size, extra))| format!("daemon d{i} {size} {extra}\n"))
            .collect()
    })
}

pub(super) fn situations() -> impl Strategy<Value = String> {
    situations_with(SOCIAL_WORDS)
}

fn situations_with(social: &'static [&'static str]) -> impl Strategy<Value = String> {
    (types(), pools(), machines(), daemons(), pods(social))
        .prop_map(|(a, b, c, d, e)| [STORAGE.to_owned(), a, b, c, d, e].concat())
}

fn options() -> impl Strategy<Value = Options> {
    let variety = prop_oneof![Just(MinValuesPolicy::Strict), Just(MinValuesPolicy::BestEffort)];
    let wishes = prop_oneof![Just(PreferencePolicy::Respect), Just(PreferencePolicy::Ignore)];
    (
        variety,
        wishes,
        prop_oneof![Just(600usize), Just(2)],
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(min_values_policy, preference_policy, max_instance_types, reserved_capacity, reserved_fallback)| {
                Options {
                    min_values_policy,
                    preference_policy,
                    max_instance_types,
                    reserved_capacity,
                    reserved_fallback,
                    ..Options::default()
                }
            },
        )
}

proptest! {
    #[test]
    fn every_plan_survives_its_audit(situation in situations(), options in options()) {
        let (snapshot, round) = situation::parse(&situation);
        let round = Round { options, ..round };
        let plan = solve(&snapshot, &round);
        let mut broken = audit(&snapshot, &plan).err().unwrap_or_default();
        // Best effort gives up variety when the list is cut, and says so.
        let best_effort = round.options.min_values_policy == MinValuesPolicy::BestEffort;
        broken.retain(|violation| !(best_effort && matches!(violation, Violation::TooAlike { .. })));
        prop_assert!(broken.is_empty(), "{situation}\n{plan}\n{broken:?}");
    }

    #[test]
    fn every_pod_of_the_round_is_in_the_plan_once(situation in situations()) {
        let (snapshot, round) = situation::parse(&situation);
        let plan = solve(&snapshot, &round);
        let mut expected = round.pods.clone();
        expected.sort();
        let mut named: Vec<_> = plan.placed().chain(plan.refusals.keys()).cloned().collect();
        named.sort();
        prop_assert_eq!(named, expected);
    }

    #[test]
    fn the_order_of_the_round_does_not_matter(situation in situations(), seed in any::<u64>()) {
        let (snapshot, round) = situation::parse(&situation);
        let mut shuffled = round.clone();
        // A shuffle that needs no generator: sorted by a scrambled position.
        let scrambled = |index: usize| (index as u64 + 1).wrapping_mul(seed | 1).rotate_left(17);
        let mut pods: Vec<_> = round.pods.iter().enumerate().map(|(index, pod)| (scrambled(index), pod.clone())).collect();
        pods.sort();
        shuffled.pods = pods.into_iter().map(|(_, pod)| pod).collect();
        prop_assert_eq!(solve(&snapshot, &round), solve(&snapshot, &shuffled));
    }

    /// What a plan launches is enough: planned once more with a claim of its in the cluster, the pods need no other.
    #[test]
    fn pods_on_a_launch_find_room_on_its_claim(situation in situations_with(&["volume=wherever"])) {
        // A pod that put up with a discouraging taint leaves it for a new node as soon as the limits allow one.
        let situation = situation.replace("taints=slow:PreferNoSchedule", "");
        let (snapshot, round) = situation::parse(&situation);
        let plan = solve(&snapshot, &round);
        for launch in plan.launches.iter().take(1) {
            let mut later = snapshot.clone();
            later.put_node(std::sync::Arc::new(situation::claim_of(&snapshot, launch)));
            let again = Round { pods: launch.pods.clone(), ..round.clone() };
            let plan = solve(&later, &again);
            prop_assert!(plan.fits_existing(), "{situation}\n{plan}");
        }
    }

    /// What is asked of a fork is not felt where it came from.
    #[test]
    fn a_fork_leaves_the_original_as_it_was(situation in situations(), more in pods(SOCIAL_WORDS)) {
        let (snapshot, round) = situation::parse(&situation);
        let before = solve(&snapshot, &round);
        let gone: Vec<_> = snapshot.nodes.keys().take(2).cloned().collect();
        let mut fork = snapshot.without(&gone);
        let moved = situation::extend(&mut fork, &more.replace("pod w", "pod x"));
        solve(&fork, &Round { pods: moved, ..round.clone() });
        prop_assert_eq!(solve(&snapshot, &round), before);
    }

    /// A further type can only help. For pods of one size it never hurts; for several the search may end at another
    /// plan, which may cost a little more.
    #[test]
    fn a_cheaper_type_makes_no_plan_dearer(
        pods in prop::collection::vec((pick(&["cpu=500m", "cpu=1 memory=1Gi", "cpu=3 memory=2Gi"]), 1..9usize), 1..4),
        price in 1..40u32,
    ) {
        let types = "type small cpu=2 memory=4Gi price=0.1
                     type medium cpu=4 memory=8Gi price=0.19
                     type large cpu=16 memory=64Gi price=0.7
                     pool general\n";
        let tolerance = if pods.len() == 1 { 1.0 + 1e-9 } else { 1.1 };
        let pods: String = pods.iter().enumerate().map(|(i, (size, count))| format!("pod w{i} {size} count={count}\n")).collect();
        let cost = |more: &str| {
            let (snapshot, round) = situation::parse(&format!("{types}{more}{pods}"));
            let plan = solve(&snapshot, &round);
            assert!(plan.refusals.is_empty(), "{plan}");
            plan.launch_price()
        };
        let (before, after) = (cost(""), cost(&format!("type bargain cpu=8 memory=32Gi price=0.{price:02}\n")));
        prop_assert!(after <= before * tolerance, "{pods}{before} became {after} with a type for 0.{price:02}");
    }

    /// Whatever is spoiled, what the guard leaves is sound, and nobody is forgotten.
    #[test]
    fn what_the_guard_leaves_is_sound(situation in situations(), seed in any::<u64>()) {
        let (snapshot, round) = situation::parse(&situation);
        let mut plan = solve(&snapshot, &round);
        spoil(&mut plan, seed);
        let (kept, broken) = guard(&snapshot, plan.clone());
        prop_assert_eq!(audit(&snapshot, &kept), Ok(()), "{}", &kept);
        prop_assert!(!broken.is_empty() || kept == plan);
        let mut expected = round.pods.clone();
        expected.sort();
        let mut named: Vec<_> = kept.placed().chain(kept.refusals.keys()).cloned().collect();
        named.sort();
        prop_assert_eq!(named, expected);
    }
}

/// Exchanges pods between places, moves launches to another zone and gives refused pods a place at random.
fn spoil(plan: &mut Plan, seed: u64) {
    let number = |salt: u64, most: usize| (seed.wrapping_mul(salt | 1).rotate_left(23) % most.max(1) as u64) as usize;
    let count = plan.launches.len();
    if count == 0 {
        return;
    }
    let refused = std::mem::take(&mut plan.refusals).into_keys();
    for (index, pod) in refused.enumerate() {
        plan.launches[number(index as u64 + 7, count)].pods.push(pod);
    }
    let launch = &mut plan.launches[number(3, count)];
    let zone = if seed.is_multiple_of(2) { "a" } else { "b" };
    std::sync::Arc::make_mut(&mut launch.requirements).replace(Requirement::one_of(vocabulary::ZONE, [zone]));
    launch.choice.zone = zone.into();
    let moved = plan.launches[number(5, count)].pods.pop();
    plan.launches[number(11, count)].pods.extend(moved);
}
