//! How long a round takes: 400 instance types, one pool, and the pods of upstream's own benchmark.

mod fixture;

use divan::{Bencher, black_box, counter::ItemsCount};
use fixture::Case;
use scheduler::{audit, solve};

fn main() {
    divan::main();
}

#[divan::bench(args = [1, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000])]
fn diverse_pods(bencher: Bencher<'_, '_>, pods: usize) {
    run(bencher, Case::Diverse { pods });
}

#[divan::bench(args = [1000, 20_000])]
fn equal_pods(bencher: Bencher<'_, '_>, pods: usize) {
    run(bencher, Case::Equal { pods });
}

/// What the guard costs on top of a round.
#[divan::bench(args = [1000, 20_000])]
fn audit_of_diverse_pods(bencher: Bencher<'_, '_>, pods: usize) {
    let (snapshot, round) = Case::Diverse { pods }.build();
    let plan = solve(&snapshot, &round);
    bencher
        .counter(ItemsCount::new(pods))
        .bench(|| audit(black_box(&snapshot), black_box(&plan)).expect("a plan survives its audit"));
}

#[divan::bench(args = [Case::Respect { pods: 4000 }, Case::Ignore { pods: 4000 }])]
fn preferences(bencher: Bencher<'_, '_>, case: &Case) {
    run(bencher, *case);
}

fn run(bencher: Bencher<'_, '_>, case: Case) {
    let (snapshot, round) = case.build();
    let plan = solve(&snapshot, &round);
    assert!(plan.refusals.is_empty(), "every pod of the benchmark has a place");
    bencher
        .counter(ItemsCount::new(round.pods.len()))
        .bench(|| solve(black_box(&snapshot), black_box(&round)));
}

/// What an index pays to publish a change while somebody holds the last snapshot.
#[divan::bench(args = [1000, 20_000])]
fn snapshot_update(bencher: Bencher<'_, '_>, pods: usize) {
    let (snapshot, round) = Case::Diverse { pods }.build();
    let pod = snapshot.pods[&round.pods[pods / 2]].clone();
    bencher.bench(|| {
        let mut next = black_box(&snapshot).clone();
        next.put_pod(pod.clone());
        next
    });
}
