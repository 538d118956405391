//! A look at the whole cluster beside upstream's, on the same fleet in the same run, and how ours grows.
//!
//! ```text
//! pass [--upstream PROGRAM] [NODES…]    prints the tables
//! pass measure NODES                    measures one fleet and prints a line of JSON
//! ```
//!
//! Every node is a candidate and runs twenty diverse pods. Ours is the time until every candidate has been looked at alone,
//! and that of the whole pass, which goes on to choose: nodes alone, nodes in groups, all commands. Upstream's is that of its
//! simulation for one candidate, the mean of some of them, times the candidates.
//!
//! Every fleet has a process of its own, ours and upstream's alike, so that the peak of memory is that fleet's own. CPU time
//! rather than wall time, because other programs on the machine change it little.

#[path = "../../scheduler/benches/fixture/mod.rs"]
mod fixture;
#[path = "../../scheduler/benches/process/mod.rs"]
mod process;

use std::{collections::BTreeSet, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context, ensure};
use disruption::{Method, Prices, Settings, decide_watched};
use jiff::Timestamp;
use model::Snapshot;
use process::{cpu_time, peak_mib};
use serde::{Deserialize, Serialize};

const SIZES: [usize; 5] = [100, 300, 1_000, 3_000, 10_000];
/// Larger fleets take upstream too long.
const UPSTREAM_SIZES: [usize; 2] = [300, 1_000];

/// The fleet as one side has understood it; `tools/upstream-bench` tells the same of the other.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fleet {
    nodes: usize,
    pods: usize,
    price_per_hour: f64,
    candidates: usize,
    #[serde(rename = "peakMiB")]
    peak_mib: u64,
}

/// What `measure` prints.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ours {
    #[serde(flatten)]
    fleet: Fleet,
    look_millis: f64,
    pass_millis: f64,
    commands: usize,
}

/// What `upstream-bench candidates` prints.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Upstreams {
    #[serde(flatten)]
    fleet: Fleet,
    /// Of one simulation.
    cpu_millis: f64,
}

impl Upstreams {
    /// What it would take to look at every candidate alone.
    fn scan_millis(&self) -> f64 {
        self.cpu_millis * self.fleet.candidates as f64
    }
}

fn main() -> anyhow::Result<()> {
    // Cargo adds `--bench`, which says nothing here.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let (mut upstream, mut sizes) = (None, Vec::new());
    while let Some(word) = words.next() {
        match word.as_str() {
            "measure" => {
                let nodes = words.next().context("measure needs a number of nodes")?.parse()?;
                println!("{}", serde_json::to_string(&measure(nodes)?)?);
                return Ok(());
            }
            "--upstream" => upstream = Some(words.next().context("--upstream needs a program")?.into()),
            number => sizes.push(number.parse().with_context(|| format!("unknown argument {number:?}"))?),
        }
    }
    if sizes.is_empty() {
        sizes = SIZES.into();
    }
    let measured = side_by_side(&sizes, upstream.as_ref())?;
    growth(&measured);
    Ok(())
}

/// Decides three times and keeps the best.
fn measure(nodes: usize) -> anyhow::Result<Ours> {
    let snapshot = fixture::fleet(nodes);
    let settings = Settings::default();
    let (mut look, mut whole) = (Duration::MAX, Duration::MAX);
    let mut first = None;
    for _ in 0..3 {
        let start = cpu_time();
        let pass = decide_watched(&snapshot, &settings, &BTreeSet::new(), now(), &mut || {
            look = look.min(cpu_time() - start);
        });
        whole = whole.min(cpu_time() - start);
        if first.is_none() {
            first = Some((pass, peak_mib()?));
        }
    }
    let (pass, peak_mib) = first.context("it was decided")?;
    Ok(Ours {
        fleet: Fleet {
            nodes,
            pods: snapshot.pods.len(),
            price_per_hour: price_per_hour(&snapshot),
            candidates: pass.eligible[&Method::Consolidation],
            peak_mib,
        },
        look_millis: look.as_secs_f64() * 1e3,
        pass_millis: whole.as_secs_f64() * 1e3,
        commands: pass.commands.len(),
    })
}

fn price_per_hour(snapshot: &Snapshot) -> f64 {
    let prices = Prices::new(snapshot);
    snapshot.nodes.values().filter_map(|node| prices.of(node)).sum()
}

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("a moment")
}

fn side_by_side(sizes: &[usize], upstream: Option<&PathBuf>) -> anyhow::Result<Vec<Ours>> {
    println!(
        "A pass of disruption and upstream's simulations, same fleet, 400 instance types, every node a candidate\n"
    );
    println!(
        "{:>6} {:>7}   {:^17}   {:^23}   {:^15}   {:^15}   {:>8}",
        "", "", "CPU ms", "upstream's CPU ms", "ratio", "peak MiB", ""
    );
    println!(
        "{:>6} {:>7}   {:>8} {:>8}   {:>11} {:>11}   {:>7} {:>7}   {:>6} {:>8}   {:>8}",
        "nodes", "pods", "look", "pass", "a candidate", "all", "look", "pass", "ours", "upstream", "commands"
    );
    let mut measured = Vec::new();
    for nodes in sizes {
        check(*nodes)?;
        let ours: Ours = process::answer(process::measure()?, &nodes.to_string())?;
        let theirs = upstream
            .filter(|_| UPSTREAM_SIZES.contains(nodes))
            .map(|program| process::answer(Command::new(program), &format!("candidates {nodes}")))
            .transpose()?;
        if let Some(theirs) = &theirs {
            agree(&ours, theirs)?;
        }
        println!("{}", row(&ours, theirs.as_ref()));
        measured.push(ours);
    }
    if upstream.is_none() {
        println!("\nUpstream is not measured: `make bench` builds it where Go is installed.");
    }
    Ok(measured)
}

/// A fleet that breaks its own rules would tell little about either side.
fn check(nodes: usize) -> anyhow::Result<()> {
    let broken = fixture::broken_rules(&fixture::fleet(nodes));
    ensure!(
        broken.is_empty(),
        "{} rules are broken on {nodes} nodes, among them: {}",
        broken.len(),
        broken[0]
    );
    Ok(())
}

/// Both sides have the same fleet before them: the price tells the types of the nodes, and those what the pods ask for.
fn agree(ours: &Ours, theirs: &Upstreams) -> anyhow::Result<()> {
    let (ours, theirs) = (&ours.fleet, &theirs.fleet);
    let counts = |fleet: &Fleet| (fleet.nodes, fleet.pods, fleet.candidates);
    ensure!(
        counts(ours) == counts(theirs),
        "nodes, pods and candidates are {:?} here and {:?} upstream",
        counts(ours),
        counts(theirs)
    );
    let (here, there) = (ours.price_per_hour, theirs.price_per_hour);
    // The sums have different orders.
    ensure!(
        (here - there).abs() < 1e-6 * here,
        "the fleet costs {here} here and {there} upstream"
    );
    Ok(())
}

fn row(ours: &Ours, theirs: Option<&Upstreams>) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let times = |millis: f64| theirs.map(|it| format!("{:.0}x", it.scan_millis() / millis));
    format!(
        "{:>6} {:>7}   {:>8.1} {:>8.1}   {:>11} {:>11}   {:>7} {:>7}   {:>6} {:>8}   {:>8}",
        ours.fleet.nodes,
        ours.fleet.pods,
        ours.look_millis,
        ours.pass_millis,
        or_dash(theirs.map(|it| format!("{:.1}", it.cpu_millis))),
        or_dash(theirs.map(|it| format!("{:.0}", it.scan_millis()))),
        or_dash(times(ours.look_millis)),
        or_dash(times(ours.pass_millis)),
        ours.fleet.peak_mib,
        or_dash(theirs.map(|it| it.fleet.peak_mib.to_string())),
        ours.commands,
    )
}

fn growth(measured: &[Ours]) {
    println!("\nTen times the nodes\n");
    println!("{:<16} {:>7} {:>7} {:>9}", "nodes", "look", "pass", "peak MiB");
    for small in measured {
        let Some(large) = measured.iter().find(|it| it.fleet.nodes == 10 * small.fleet.nodes) else {
            continue;
        };
        println!(
            "{:<16} {:>6.1}x {:>6.1}x {:>8.1}x",
            format!("{} to {}", small.fleet.nodes, large.fleet.nodes),
            large.look_millis / small.look_millis,
            large.pass_millis / small.pass_millis,
            large.fleet.peak_mib as f64 / small.fleet.peak_mib as f64
        );
    }
}
