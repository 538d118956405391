//! The same requests, made from a seed, to this server and to the real kube-apiserver: do they give the same answers?
//!
//! `KUBE_MEM_SEEDS=100..200 cargo test -p kube-mem --test differential` runs other seeds. A failure prints the seed, the
//! request and both answers as a diff.

mod differential {
    pub mod answer;
    pub mod objects;
    pub mod pair;
    pub mod steps;
    pub mod watched;
}

use differential::pair::Pair;
use differential::steps::Story;

/// Requests of one seed. Long enough that objects are made, changed and removed again several times.
const STEPS: usize = 60;

fn seeds() -> std::ops::Range<u64> {
    let text = std::env::var("KUBE_MEM_SEEDS").unwrap_or_else(|_| "0..16".into());
    let (first, last) = text.split_once("..").expect("KUBE_MEM_SEEDS is a range such as 0..100");
    first.parse().expect("a first seed")..last.parse().expect("a last seed")
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_the_real_server() {
    let pair = Pair::start().await;
    let mut differences = Vec::new();
    for seed in seeds() {
        if let Some(difference) = story_differs(&pair, seed).await {
            differences.push(format!("seed {seed}, {difference}"));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differences\n\n{}",
        differences.len(),
        differences.join("\n\n")
    );
}

/// The first difference of a story. After it the two servers hold different objects, so the rest would say little.
async fn story_differs(pair: &Pair, seed: u64) -> Option<String> {
    let mut story = Story::new(seed);
    pair.prepare(&story.namespace).await;
    let versions = pair.versions(&story.namespace).await;
    for number in 0..STEPS {
        let step = story.next_step();
        if let Some(difference) = pair.compare(&mut story, &step).await {
            return Some(format!("step {number}: {step}\n{difference}"));
        }
    }
    pair.compare_watches(&story.namespace, &versions).await
}
