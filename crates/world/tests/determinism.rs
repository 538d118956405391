//! One seed is one history, also with faults.

use world::storm::Storm;

#[test]
fn two_runs_of_a_storm_give_the_same_timeline_to_the_byte() {
    for seed in [0, 7, 22] {
        let (first, second) = (Storm::seeded(seed).run(), Storm::seeded(seed).run());
        assert!(first.timeline.lines().count() > 50, "seed {seed} tells a story");
        assert!(first.timeline == second.timeline, "seed {seed} tells two stories");
    }
}

#[test]
fn another_seed_is_another_history() {
    assert_ne!(Storm::seeded(1).run().timeline, Storm::seeded(2).run().timeline);
}
