//! One seed is one history, also with faults.

use world::storm::{Outcome, Restless, Trouble};

#[test]
fn two_runs_of_a_storm_give_the_same_timeline_to_the_byte() {
    let trouble: fn(u64) -> Outcome = |seed| Trouble::seeded(seed).run();
    let restless: fn(u64) -> Outcome = |seed| Restless::seeded(seed).run();
    for (seed, storm) in [(0, trouble), (7, trouble), (22, trouble), (3, restless)] {
        let (first, second) = (storm(seed), storm(seed));
        assert!(first.timeline.lines().count() > 50, "seed {seed} tells a story");
        assert!(first.timeline == second.timeline, "seed {seed} tells two stories");
    }
}

#[test]
fn another_seed_is_another_history() {
    assert_ne!(Trouble::seeded(1).run().timeline, Trouble::seeded(2).run().timeline);
}
