//! Generation, tidy checks and release chores: `cargo xtask <task>`.

mod generate;
mod pages;
mod sbom;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of this repository")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write the files that are generated from code
    Generate {
        /// Change nothing; fail if a file is not current
        #[arg(long)]
        check: bool,
    },
    /// Make the pages of the book fit to be read away from the repository; for mdBook to call
    Pages {
        /// Whether a renderer is supported, which all are
        question: Vec<String>,
    },
    /// Print the bill of materials of the program, in CycloneDX's format
    Sbom {
        /// Features of the build, such as cli/aws
        #[arg(long, default_value = "")]
        features: String,
        /// Leave out what only other targets link
        #[arg(long)]
        target: Option<String>,
    },
    /// Look for forgotten markers, machine paths, dead links, pages outside of the book, messages that nothing
    /// says, orphan modules and overgrown files
    Tidy,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Generate { check: false } => generate::write(&repository()),
        Task::Generate { check: true } => generate::check(&repository()),
        Task::Pages { question } => pages::run(&question),
        Task::Sbom { features, target } => sbom::print(&repository(), &features, target.as_deref()),
        Task::Tidy => tidy::run(&repository()),
    };
    match outcome {
        Ok(complaints) if complaints.is_empty() => ExitCode::SUCCESS,
        Ok(complaints) => {
            for complaint in &complaints {
                eprintln!("{complaint}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace that this program is run in. That need not be the one that it was built in: clones may share
/// their build output.
fn repository() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let manifest = Path::new(&manifest);
    manifest.parent().unwrap_or(manifest).to_owned()
}
