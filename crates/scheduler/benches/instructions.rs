//! Whether the solver has become slower, told from counted instructions: no other program on the machine changes them.
//!
//! ```text
//! instructions [--update]              compares with the baseline beside this file, or rewrites it
//! instructions count CASE NUMBER…      builds a case and solves it; `build` instead of `count` leaves out the solving
//! ```
//!
//! A case is run twice under callgrind, once without solving, and the difference counts.

mod fixture;

use std::{collections::BTreeMap, fmt::Write as _, hint::black_box, path::Path, process::Command};

use anyhow::{Context, bail, ensure};
use fixture::Case;
use scheduler::solve;

/// How much of a difference says nothing: another patch release of the compiler, another libc.
const TOLERANCE: f64 = 0.05;

/// Small enough for an emulated processor; together they go through the solver's costly parts.
const CASES: [Case; 6] = [
    Case::Diverse { pods: 1000 },
    Case::Respect { pods: 400 },
    Case::Ignore { pods: 400 },
    Case::Equal { pods: 1000 },
    Case::Catalog { pods: 200 },
    Case::Fleet {
        pods: 200,
        nodes: 500,
        running: 5,
    },
];

fn main() -> anyhow::Result<()> {
    // Cargo adds `--bench`, which says nothing here.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        Some(("build", case)) => {
            black_box(Case::parse(case)?.build());
        }
        Some(("count", case)) => {
            let (snapshot, round) = Case::parse(case)?.build();
            black_box(solve(black_box(&snapshot), black_box(&round)));
        }
        Some(("--update", [])) => update()?,
        None => compare()?,
        Some(_) => bail!("unknown arguments {words:?}"),
    }
    Ok(())
}

fn update() -> anyhow::Result<()> {
    let mut text = String::from("# Instructions of one solve, written by `make bench-instructions UPDATE=1`.\n");
    for case in CASES {
        let count = instructions(case)?;
        println!("{:<20} {count:>15}", case.to_string());
        writeln!(text, "{case}: {count}")?;
    }
    std::fs::write(baseline_path(), text)?;
    Ok(())
}

fn compare() -> anyhow::Result<()> {
    let baseline = baseline()?;
    let (mut slower, mut faster) = (0, 0);
    for case in CASES {
        let expected = *baseline
            .get(&case.to_string())
            .with_context(|| format!("no baseline for {case}"))?;
        let count = instructions(case)?;
        let change = count as f64 / expected as f64 - 1.0;
        slower += usize::from(change > TOLERANCE);
        faster += usize::from(change < -TOLERANCE);
        println!(
            "{:<20} {count:>15}  baseline {expected:>15}  {:>+7.2} %",
            case.to_string(),
            change * 100.0
        );
    }
    if faster > 0 {
        println!("hint: `make bench-instructions UPDATE=1` keeps the gain");
    }
    ensure!(
        slower == 0,
        "{slower} of {} cases take more than {:.0} % more instructions than the baseline\n\
         hint: if that is the price of something worth having, run `make bench-instructions UPDATE=1`",
        CASES.len(),
        TOLERANCE * 100.0
    );
    Ok(())
}

fn baseline_path() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.baseline"))
}

fn baseline() -> anyhow::Result<BTreeMap<String, u64>> {
    let text = std::fs::read_to_string(baseline_path())?;
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (case, count) = line.split_once(": ").with_context(|| format!("{line:?} is no count"))?;
            Ok((case.to_owned(), count.parse()?))
        })
        .collect()
}

/// What solving takes, without building the case.
fn instructions(case: Case) -> anyhow::Result<u64> {
    let whole = emulated("count", case)?;
    let building = emulated("build", case)?;
    whole.checked_sub(building).context("solving takes instructions")
}

fn emulated(what: &str, case: Case) -> anyhow::Result<u64> {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .arg(what)
        .args(case.to_string().split(' '));
    let output = command
        .output()
        .context("cannot run valgrind, which counts the instructions")?;
    let report = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {report}");
    let collected = report.lines().find_map(|line| line.split_once("Collected : "));
    let (_, count) = collected.with_context(|| format!("no count in {report}"))?;
    Ok(count.trim().parse()?)
}
