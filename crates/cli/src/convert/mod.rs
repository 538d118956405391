//! `karpenter convert`: manifests, Helm values and settings of older releases, rewritten for v1 or v1beta1.
//!
//! What becomes of a document is decided by [`legacy::convert`]. `read` finds the documents in the files, `print` writes
//! them down again; what is not converted keeps its text.

mod print;
mod read;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use legacy::{LaunchTemplates, Options, Refusal, Target};

use crate::exit::Failure;
use crate::input::Depth;
use crate::output;

#[derive(Debug, Args)]
pub struct Arguments {
    /// What to convert: a file, a directory, or - for standard input. Can be repeated.
    #[arg(short, long, value_name = "FILE")]
    filename: Vec<String>,
    /// Read directories with all that is below them.
    #[arg(short = 'R', long)]
    recursive: bool,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Output::Yaml)]
    output: Output,
    /// The generation to convert to.
    #[arg(long, value_enum, default_value_t = To::V1)]
    to: To,
    /// Print nothing; exit with code 1 when something would change.
    #[arg(long)]
    check: bool,
    /// Do not write down the requirements that admission used to add.
    #[arg(long)]
    ignore_defaults: bool,
    /// The IAM role of all nodes, in place of instance profiles.
    #[arg(long, value_name = "ROLE")]
    node_role: Option<String>,
    /// The cluster's name, for objects that leave it out. [default: the one in the settings or values]
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<String>,
    /// The instance profile of classes that name none. [default: the one in the settings or values]
    #[arg(long, value_name = "PROFILE")]
    default_instance_profile: Option<String>,
    /// Tags that every class gets.
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = tag)]
    global_tags: Vec<(String, String)>,
    /// The image family of v1alpha3 objects, which do not say it.
    #[arg(long, value_name = "FAMILY", value_parser = clap::builder::PossibleValuesParser::new(legacy::alpha::images::FAMILIES))]
    ami_family: Option<String>,
    /// Write budgets that come near to the parallelism of the releases before 0.34.
    #[arg(long)]
    preserve_parallelism: bool,
    /// Leave metadata options out where they were absent, which makes the hop limit 1.
    #[arg(long)]
    v1_metadata_defaults: bool,
    /// What becomes of launch templates; both need the output of aws ec2 describe-launch-template-versions among the files.
    #[arg(long, value_enum, value_name = "CHOICE")]
    launch_template: Option<LaunchTemplate>,
    /// Rename old labels and annotations in other objects too.
    #[arg(long)]
    rewrite_workloads: bool,
    /// Leave out what cannot be kept, instead of refusing.
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Yaml,
    Json,
    Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    V1,
    V1beta1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LaunchTemplate {
    /// Move what the template says into the class.
    Resolve,
    /// Name the template in an annotation of the class.
    Keep,
}

fn tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is not KEY=VALUE")),
    }
}

/// The program under the name of upstream's tool is this command.
pub fn as_command(arguments: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let mut arguments: Vec<String> = arguments.collect();
    let name = arguments.first().map(Path::new).and_then(Path::file_stem);
    if name.is_some_and(|name| name == "karpenter-convert") {
        arguments.insert(1, "convert".to_owned());
    }
    arguments.into_iter()
}

impl Arguments {
    fn options(&self) -> Options {
        Options {
            target: match self.to {
                To::V1 => Target::V1,
                To::V1beta1 => Target::V1Beta1,
            },
            ignore_defaults: self.ignore_defaults,
            node_role: self.node_role.clone(),
            cluster_name: self.cluster_name.clone(),
            default_instance_profile: self.default_instance_profile.clone(),
            global_tags: self.global_tags.iter().cloned().collect::<BTreeMap<_, _>>(),
            ami_family: self.ami_family.clone(),
            preserve_parallelism: self.preserve_parallelism,
            v1_metadata_defaults: self.v1_metadata_defaults,
            launch_templates: match self.launch_template {
                None => LaunchTemplates::Refuse,
                Some(LaunchTemplate::Resolve) => LaunchTemplates::Resolve,
                Some(LaunchTemplate::Keep) => LaunchTemplates::Keep,
            },
            rewrite_workloads: self.rewrite_workloads,
            force: self.force,
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.filename.is_empty() {
        return Err(Failure::Input(anyhow!("must specify -f")));
    }
    let depth = if arguments.recursive {
        Depth::Tree
    } else {
        Depth::Folder
    };
    let read = read::documents(&arguments.filename, depth)?;
    let conversion = legacy::convert(&read.inputs(), &arguments.options()).map_err(refuse)?;
    if arguments.check {
        return check(&conversion);
    }
    for warning in &conversion.warnings {
        eprintln!("warning: {warning}");
    }
    let others: Vec<String> = conversion
        .others
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    if !others.is_empty() && !arguments.rewrite_workloads {
        eprintln!("note: other objects stay as they are: {}", others.join(", "));
    }
    if !conversion.recognized && !arguments.rewrite_workloads {
        return Err(Failure::No(anyhow!("no objects passed to convert")));
    }
    output::print(&match arguments.output {
        Output::Yaml => print::yaml(&read, &conversion)?,
        Output::Json => print::json(&conversion)?,
        Output::Name => print::names(&conversion),
    })
}

/// All reasons, a line each; the last of them is how the program ends.
fn refuse(mut refusals: Vec<Refusal>) -> Failure {
    let last = refusals.pop();
    for refusal in refusals {
        eprintln!("karpenter: {refusal}");
    }
    Failure::No(last.map_or_else(|| anyhow!("nothing can be converted"), anyhow::Error::from))
}

fn check(conversion: &legacy::Conversion) -> Result<(), Failure> {
    if !conversion.changes_anything() {
        return Ok(());
    }
    let names = print::changed_names(conversion);
    Err(Failure::No(anyhow!(
        "not converted yet; would become {}",
        names.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_upstreams_tool_stands_for_the_command() {
        let called = |words: &[&str]| as_command(words.iter().map(|word| (*word).to_owned())).collect::<Vec<_>>();
        assert_eq!(
            called(&["/usr/bin/karpenter-convert", "-f", "x"]),
            ["/usr/bin/karpenter-convert", "convert", "-f", "x"]
        );
        assert_eq!(called(&["karpenter", "crds"]), ["karpenter", "crds"]);
    }
}
