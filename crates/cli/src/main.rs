//! The program `karpenter`: the controller, the playground and the tools for people.
//!
//! Each subcommand is a module; they print values that other crates computed and decide nothing themselves.

#[cfg(feature = "aws")]
mod aws;
mod completion;
mod controller;
mod convert;
mod crds;
mod exit;
mod input;
mod instance_types;
mod output;
mod plan;
mod playground;
mod question;
mod schedule;
mod signals;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The commit that this binary was built from.
pub const COMMIT: &str = env!("KARPENTER_COMMIT");

/// Version, commit, and the upstream release whose behaviour this build matches.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("KARPENTER_COMMIT"),
    "), behaves as upstream Karpenter 1.14"
);

/// A node autoscaler for Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "karpenter", version = VERSION, arg_required_else_help = true)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the controllers against a cluster.
    Controller(Box<controller::Arguments>),
    /// Try everything on this machine: embedded API server, simulated cloud, the real controllers.
    Playground(playground::Arguments),
    /// Plan one scheduling round on files or on a cluster, without acting.
    Schedule(Box<schedule::Arguments>),
    /// Say what the controllers would do next and why each other node stays, without acting.
    Plan(Box<plan::Arguments>),
    /// Rewrite manifests, Helm values and settings of older releases for v1.
    Convert(Box<convert::Arguments>),
    /// List or export the instance types of the simulated provider.
    InstanceTypes(instance_types::Arguments),
    /// Print the custom resource definitions that this build was made with.
    Crds(crds::Arguments),
    /// Print a completion script for a shell.
    Completion(completion::Arguments),
}

fn main() -> ExitCode {
    let arguments = convert::as_command(std::env::args());
    let program = Program::parse_from(controller::with_two_dashes(arguments));
    let outcome = match program.command {
        Command::Controller(arguments) => controller::run(*arguments),
        Command::Playground(arguments) => playground::run(arguments),
        Command::Schedule(arguments) => schedule::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::InstanceTypes(arguments) => instance_types::run(&arguments),
        Command::Crds(arguments) => crds::run(&arguments),
        Command::Completion(arguments) => completion::run::<Program>(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn no_two_flags_are_in_each_others_way() {
        Program::command().debug_assert();
    }
}
