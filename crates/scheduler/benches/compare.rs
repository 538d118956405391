//! Our solver beside upstream's, on the same pods in the same run, and how ours grows.
//!
//! ```text
//! compare [--upstream PROGRAM [--upstream-large]]   prints the tables
//! compare measure CASE NUMBER…                      measures one case and prints a line of JSON
//! ```
//!
//! Every case runs in a process of its own, ours and upstream's alike, so that the peak of memory is that case's own.
//! CPU time rather than wall time, because other programs on the machine change it little.

mod fixture;
mod process;

use std::{hint::black_box, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context, bail};
use fixture::Case;
use process::{cpu_time, peak_mib};
use scheduler::solve;
use serde::{Deserialize, Serialize};

/// What `measure` prints, and `tools/upstream-bench` too.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Measured {
    case: String,
    pods: usize,
    cpu_seconds: f64,
    nodes: usize,
    price_per_hour: f64,
    #[serde(rename = "peakMiB")]
    peak_mib: u64,
}

impl Measured {
    fn pods_per_cpu_second(&self) -> f64 {
        self.pods as f64 / self.cpu_seconds
    }
}

fn main() -> anyhow::Result<()> {
    // Cargo adds `--bench`, which says nothing here.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let Some(("measure", case)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        println!("{}", serde_json::to_string(&measure(Case::parse(case)?)?)?);
        return Ok(());
    }
    let upstream = Upstream::from(&words)?;
    side_by_side(&upstream)?;
    growth()
}

/// Solves until a second of CPU time is spent, at least three times, and keeps the best.
fn measure(case: Case) -> anyhow::Result<Measured> {
    let (snapshot, round) = case.build();
    let start = cpu_time();
    let plan = solve(&snapshot, &round);
    let first = cpu_time() - start;
    let peak_mib = peak_mib()?;
    if let Some((pod, refusal)) = plan.refusals.first_key_value() {
        bail!(
            "{} pods have no place, {pod} among them: {refusal}",
            plan.refusals.len()
        );
    }
    let (mut best, mut total, mut runs) = (first, first, 1);
    while runs < 3 || total < Duration::from_secs(1) {
        let start = cpu_time();
        black_box(solve(black_box(&snapshot), black_box(&round)));
        let spent = cpu_time() - start;
        best = best.min(spent);
        total += spent;
        runs += 1;
    }
    Ok(Measured {
        case: case.to_string(),
        pods: case.pods(),
        cpu_seconds: best.as_secs_f64(),
        nodes: plan.launches.len(),
        price_per_hour: plan.launch_price(),
        peak_mib,
    })
}

/// Upstream's scheduler as a program, where it could be built.
struct Upstream {
    program: Option<PathBuf>,
    /// Also where it takes minutes.
    large: bool,
}

impl Upstream {
    fn from(words: &[String]) -> anyhow::Result<Self> {
        let mut upstream = Self {
            program: None,
            large: false,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--upstream" => upstream.program = Some(words.next().context("--upstream needs a program")?.into()),
                "--upstream-large" => upstream.large = true,
                other => bail!("unknown argument {other:?}"),
            }
        }
        Ok(upstream)
    }

    /// Upstream needs minutes of CPU time where it says so here, and the smallest cases tell nothing about it.
    fn measure(&self, case: Case) -> anyhow::Result<Option<Measured>> {
        let wanted = match case {
            Case::Diverse { pods } => matches!(pods, 1000 | 5000) || (pods == 20_000 && self.large),
            _ => true,
        };
        match &self.program {
            Some(program) if wanted => process::answer(Command::new(program), &case.to_string()).map(Some),
            _ => Ok(None),
        }
    }
}

fn measure_apart(case: Case) -> anyhow::Result<Measured> {
    process::answer(process::measure()?, &case.to_string())
}

fn side_by_side(upstream: &Upstream) -> anyhow::Result<()> {
    println!("Our solver and upstream's, same pods, 400 instance types\n");
    println!(
        "{:<9} {:>6}   {:^26}   {:^15}   {:^26}   {:^15}",
        "", "", "pods per CPU second", "new nodes", "price per hour", "peak MiB"
    );
    println!(
        "{:<9} {:>6}   {:>9} {:>8} {:>7}   {:>6} {:>8}   {:>9} {:>9} {:>6}   {:>6} {:>8}",
        "case",
        "pods",
        "ours",
        "upstream",
        "ratio",
        "ours",
        "upstream",
        "ours",
        "upstream",
        "ratio",
        "ours",
        "upstream"
    );
    let sizes = [1, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000];
    let diverse = sizes.map(|pods| Case::Diverse { pods });
    let preferences = [Case::Respect { pods: 4000 }, Case::Ignore { pods: 4000 }];
    for case in diverse.into_iter().chain(preferences) {
        let ours = measure_apart(case)?;
        let theirs = upstream.measure(case)?;
        println!("{}", comparison(case, &ours, theirs.as_ref()));
    }
    if upstream.program.is_none() {
        println!("\nUpstream is not measured: `make bench` builds it where Go is installed.");
    } else if !upstream.large {
        println!("\nUPSTREAM_LARGE=1 measures upstream with 20000 pods, too; that takes minutes.");
    }
    Ok(())
}

fn comparison(case: Case, ours: &Measured, theirs: Option<&Measured>) -> String {
    let name = case.to_string();
    let name = name.split(' ').next().unwrap_or_default();
    let speed = ours.pods_per_cpu_second();
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    format!(
        "{name:<9} {:>6}   {speed:>9.0} {:>8} {:>7}   {:>6} {:>8}   {:>9.2} {:>9} {:>6}   {:>6} {:>8}",
        ours.pods,
        or_dash(theirs.map(|it| format!("{:.0}", it.pods_per_cpu_second()))),
        or_dash(theirs.map(|it| format!("{:.0}x", speed / it.pods_per_cpu_second()))),
        ours.nodes,
        or_dash(theirs.map(|it| it.nodes.to_string())),
        ours.price_per_hour,
        or_dash(theirs.map(|it| format!("{:.2}", it.price_per_hour))),
        or_dash(theirs.map(|it| format!("{:.2}", ours.price_per_hour / it.price_per_hour))),
        ours.peak_mib,
        or_dash(theirs.map(|it| it.peak_mib.to_string())),
    )
}

fn growth() -> anyhow::Result<()> {
    let fleet = |pods, nodes, running| Case::Fleet { pods, nodes, running };
    let tables: [(&str, &[Case]); 4] = [
        (
            "More pods",
            &[1000, 3000, 10_000, 30_000, 100_000].map(|pods| Case::Diverse { pods }),
        ),
        (
            "More nodes that are there, 10 pods on each: pods pending, nodes, pods per node",
            &[0, 100, 1000, 3000, 10_000].map(|nodes| fleet(1000, nodes, 10)),
        ),
        (
            "400 types with 5 offerings, then 850 types with 8 offerings",
            &[Case::Diverse { pods: 20_000 }, Case::Catalog { pods: 20_000 }],
        ),
        (
            "100,000 pods on 10,000 nodes: all pending, then all running",
            &[fleet(100_000, 10_000, 0), fleet(1000, 10_000, 10)],
        ),
    ];
    for (title, cases) in tables {
        println!("\n{title}\n");
        println!(
            "{:<24} {:>10} {:>11} {:>9} {:>10} {:>9}",
            "case", "CPU ms", "us per pod", "new nodes", "price/h", "peak MiB"
        );
        for case in cases {
            let found = measure_apart(*case)?;
            println!(
                "{:<24} {:>10.1} {:>11.1} {:>9} {:>10.2} {:>9}",
                found.case,
                found.cpu_seconds * 1e3,
                found.cpu_seconds * 1e6 / found.pods as f64,
                found.nodes,
                found.price_per_hour,
                found.peak_mib
            );
        }
    }
    Ok(())
}
