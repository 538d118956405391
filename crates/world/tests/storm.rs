//! Storms: random workloads, faults and prices from a seed. First safety: no rule is broken while things break or move.
//! Then liveness: they stop, every pod runs, and at the end nothing is left.
//!
//! `STORM_SEEDS` says how many (200 unless told), `STORM_FROM` where to begin. A failure names its seed;
//! `STORM_FROM=<seed> STORM_SEEDS=1 STORM_SHOW=1` shows its whole timeline.

use std::{sync::Mutex, thread};

use world::storm::{Outcome, Restless, Trouble};

/// Simulations live on small allocations; this one gives them out in half the time of the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}

#[test]
fn no_trouble_breaks_a_rule_and_all_of_it_passes() {
    play(|seed| Trouble::seeded(seed).run());
}

#[test]
fn no_restless_world_moves_nodes_to_and_fro_and_all_of_them_come_to_rest() {
    play(|seed| Restless::seeded(seed).run());
}

fn play(storm: impl Fn(u64) -> Outcome + Sync) {
    let (from, count) = (number("STORM_FROM", 0), number("STORM_SEEDS", 200));
    let show = std::env::var_os("STORM_SHOW").is_some();
    let next = Mutex::new(from..from + count);
    let failures = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.lock().expect("no worker panics with the lock").next();
                    let Some(seed) = seed else { return };
                    let outcome = storm(seed);
                    if show {
                        println!("{}", outcome.timeline);
                    }
                    if let Err(failure) = outcome.verdict {
                        failures.lock().expect("no worker panics with the lock").push(failure);
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("no worker panics with the lock");
    failures.sort_by_key(|failure| failure.seed);
    for failure in failures.iter().take(5) {
        eprintln!("{failure}\n");
    }
    let seeds: Vec<u64> = failures.iter().map(|failure| failure.seed).collect();
    assert!(
        seeds.is_empty(),
        "{} of {count} storms failed, seeds {seeds:?}",
        seeds.len()
    );
}
