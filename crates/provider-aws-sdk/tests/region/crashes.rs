//! The program dies before and after each change that a launch makes, in the cluster or in the region. Whatever it had done,
//! no instance is leaked and none is launched twice.

use api::v1::NodeClaim;

use crate::stage::{Stage, class, minutes, pool};

const PODS: u32 = 3;

/// A pool at rest, and then a pod for each of three nodes.
async fn told(crash: Option<u64>) -> u64 {
    let mut stage = Stage::among_few("m5.*").await;
    stage.apply(class("web")).await;
    stage.apply(pool("web", &["m5.large"])).await;
    stage.until_ready("web", minutes(5)).await;
    // What followed the start has been written down.
    tokio::time::sleep(minutes(1)).await;
    let first = stage.steps();
    if let Some(crash) = crash {
        stage.die_at(first + crash);
    }
    stage.scale("web", PODS).await;
    stage.until_running("web", PODS as usize, minutes(15)).await;
    // Longer than whatever collects what nobody owns.
    tokio::time::sleep(minutes(3)).await;
    if stage.is_dead() {
        stage.restart();
        tokio::time::sleep(minutes(3)).await;
    }
    // A later life counts anew, and nobody asks how many steps it took.
    let steps = stage.steps().saturating_sub(first);

    let alive = stage.alive();
    let claims = stage.list::<NodeClaim>().await;
    let mut owned: Vec<String> = claims
        .iter()
        .filter_map(|claim| claim.status.as_ref()?.provider_id.clone())
        .collect();
    owned.sort_unstable();
    let mut running: Vec<String> = alive
        .iter()
        .map(aws_fake::region::instances::Instance::provider_id)
        .collect();
    running.sort_unstable();
    assert_eq!(
        running, owned,
        "crash at {crash:?}: each instance has its claim, each claim its instance"
    );
    assert_eq!(stage.nodes().await, alive.len(), "crash at {crash:?}");
    assert_eq!(
        stage.launched(),
        PODS as usize,
        "crash at {crash:?}: an instance too many was launched"
    );
    assert_eq!(stage.running("web").await, PODS as usize, "crash at {crash:?}");
    steps
}

fn on_its_own_time(crash: Option<u64>) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    runtime.expect("a runtime").block_on(told(crash))
}

fn at_every_eighth_step_from(first: u64) {
    let steps = on_its_own_time(None);
    assert!(steps >= 30, "the launch has only {steps} steps");
    for step in (first..=steps).step_by(8) {
        on_its_own_time(Some(step));
    }
}

/// Each test tells an eighth of the stories, so that they are told side by side.
macro_rules! at_every_eighth_step_from {
    ($($name:ident: $first:literal,)*) => {
        mod a_launch_survives_a_crash_at_every_eighth_step_from {
            $(
                #[test]
                fn $name() {
                    super::at_every_eighth_step_from($first);
                }
            )*
        }
    };
}

at_every_eighth_step_from! {
    the_first: 1,
    the_second: 2,
    the_third: 3,
    the_fourth: 4,
    the_fifth: 5,
    the_sixth: 6,
    the_seventh: 7,
    the_eighth: 8,
}
