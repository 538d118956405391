//! `karpenter completion`: a script for the user's shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::exit::Failure;

#[derive(Debug, Args)]
pub struct Arguments {
    /// The shell to complete in.
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run<Program: CommandFactory>(arguments: &Arguments) -> Result<(), Failure> {
    clap_complete::generate(
        arguments.shell,
        &mut Program::command(),
        "karpenter",
        &mut std::io::stdout(),
    );
    Ok(())
}
