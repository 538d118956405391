//! The settings of the AWS provider, parsed once: flag over environment over default.

use std::time::Duration;

use clap::Args;
use settings::Sources;

/// Upstream's flags. Each can be given as an environment variable too: `--cluster-name` as `CLUSTER_NAME`.
#[derive(Clone, Debug, Default, Args)]
// The default name of the group is that of the struct, which the other settings have taken.
#[group(id = "AwsFlags")]
#[command(next_help_heading = "AWS (flag over environment variable over default)")]
pub struct Flags {
    /// The cluster that instances join. Required.
    #[arg(long, value_name = "NAME")]
    pub cluster_name: Option<String>,
    /// The address of the API server; discovered when absent.
    #[arg(long, value_name = "URL")]
    pub cluster_endpoint: Option<String>,
    /// The certificate of the API server, in base64; discovered when absent.
    #[arg(long, value_name = "BASE64")]
    pub cluster_ca_bundle: Option<String>,
    /// The VPC reaches neither IAM nor the price list. [default: false]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub isolated_vpc: Option<String>,
    /// Ask EKS, not the API server, for the version of the cluster. [default: false]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub eks_control_plane: Option<String>,
    /// The part of an instance's memory that the hypervisor keeps. [default: 0.075]
    #[arg(long, value_name = "FRACTION")]
    pub vm_memory_overhead_percent: Option<String>,
    /// The queue that announces interruptions, by name; none when empty.
    #[arg(long, value_name = "NAME")]
    pub interruption_queue: Option<String>,
    /// Network interfaces that are kept from pods. [default: 0]
    #[arg(long, value_name = "N")]
    pub reserved_enis: Option<String>,
    /// Believe node classes without trying them on EC2. [default: false]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub disable_dry_run: Option<String>,
    /// Keep away from zones that the cluster is shifted out of. [default: false]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub enable_zonal_shift: Option<String>,
    /// How long images that were found count as current. [default: 1m]
    #[arg(long, value_name = "DURATION")]
    pub ami_refresh_interval: Option<String>,
    /// How long subnets that were found count as current. [default: 1m]
    #[arg(long, value_name = "DURATION")]
    pub subnet_refresh_interval: Option<String>,
    /// Features as Name=true, separated by commas. [default: NodeClassCEL=false]
    #[arg(long, value_name = "GATES")]
    pub aws_feature_gates: Option<String>,
}

/// The settings, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub cluster_name: String,
    pub cluster_endpoint: Option<String>,
    pub cluster_ca_bundle: Option<String>,
    pub isolated_vpc: bool,
    pub eks_control_plane: bool,
    pub vm_memory_overhead: f64,
    pub interruption_queue: Option<String>,
    pub reserved_enis: u32,
    pub dry_run: bool,
    pub zonal_shift: bool,
    pub ami_refresh_interval: Duration,
    pub subnet_refresh_interval: Duration,
    /// Whether kubelet settings may be expressions over the instance type.
    pub node_class_cel: bool,
}

/// The only optional feature, in the setting `aws-feature-gates`.
pub const NODE_CLASS_CEL: Gate = Gate {
    name: "NodeClassCEL",
    default: false,
    meaning: "expressions in `spec.kubelet` of an EC2NodeClass",
};

/// What there is to know of an optional feature.
pub struct Gate {
    pub name: &'static str,
    pub default: bool,
    /// What it opens.
    pub meaning: &'static str,
}

/// Every setting that is wrong, together.
#[derive(Debug, thiserror::Error)]
#[error("{}", complaints.join("; "))]
pub struct InvalidOptions {
    pub complaints: Vec<String>,
}

const SHORTEST_REFRESH: Duration = Duration::from_secs(60);

impl Options {
    /// The defaults for a cluster of this name.
    pub fn for_cluster(name: &str) -> Self {
        let flags = Flags {
            cluster_name: Some(name.to_owned()),
            ..Flags::default()
        };
        Self::resolve(&flags, |_| None).expect("the defaults are valid")
    }

    /// Puts flags, environment and defaults together. The environment is an argument so that tests need none.
    pub fn resolve(flags: &Flags, variable: impl Fn(&str) -> Option<String>) -> Result<Self, InvalidOptions> {
        let mut sources = Sources::new(&variable);
        let text = |sources: &Sources<'_>, flag: Option<&String>, name: &str| {
            sources.given(flag, name).filter(|text| !text.is_empty())
        };
        let options = Self {
            cluster_name: text(&sources, flags.cluster_name.as_ref(), "cluster-name").unwrap_or_default(),
            cluster_endpoint: text(&sources, flags.cluster_endpoint.as_ref(), "cluster-endpoint"),
            cluster_ca_bundle: text(&sources, flags.cluster_ca_bundle.as_ref(), "cluster-ca-bundle"),
            isolated_vpc: sources.truth(flags.isolated_vpc.as_ref(), "isolated-vpc", false),
            eks_control_plane: sources.truth(flags.eks_control_plane.as_ref(), "eks-control-plane", false),
            vm_memory_overhead: number(
                &mut sources,
                flags.vm_memory_overhead_percent.as_ref(),
                "vm-memory-overhead-percent",
                0.075,
            ),
            interruption_queue: text(&sources, flags.interruption_queue.as_ref(), "interruption-queue"),
            reserved_enis: number(&mut sources, flags.reserved_enis.as_ref(), "reserved-enis", 0.0) as u32,
            dry_run: !sources.truth(flags.disable_dry_run.as_ref(), "disable-dry-run", false),
            zonal_shift: sources.truth(flags.enable_zonal_shift.as_ref(), "enable-zonal-shift", false),
            ami_refresh_interval: interval(
                &mut sources,
                flags.ami_refresh_interval.as_ref(),
                "ami-refresh-interval",
            ),
            subnet_refresh_interval: interval(
                &mut sources,
                flags.subnet_refresh_interval.as_ref(),
                "subnet-refresh-interval",
            ),
            node_class_cel: gate(&sources, flags.aws_feature_gates.as_ref(), &NODE_CLASS_CEL),
        };
        if options.cluster_name.is_empty() {
            sources.complain("cluster-name", "is required");
        }
        if options
            .cluster_endpoint
            .as_deref()
            .is_some_and(|url| !is_absolute_url(url))
        {
            sources.complain("cluster-endpoint", "must be an absolute URL with a host");
        }
        if sources.complaints.is_empty() {
            Ok(options)
        } else {
            Err(InvalidOptions {
                complaints: sources.complaints,
            })
        }
    }
}

fn is_absolute_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !host.is_empty()
}

/// Wherever it comes from, a negative number stops the program.
fn number(sources: &mut Sources<'_>, flag: Option<&String>, name: &str, default: f64) -> f64 {
    let number = sources.value(flag, name, default);
    if number < 0.0 {
        sources.complain(name, "cannot be negative");
    }
    number
}

fn interval(sources: &mut Sources<'_>, flag: Option<&String>, name: &str) -> Duration {
    let interval = sources.duration(flag, name, "1m");
    if interval < SHORTEST_REFRESH {
        sources.complain(name, "cannot be below 1m");
    }
    interval
}

/// Names that nobody knows are passed over, so that lists written for other releases keep working. The last word counts.
fn gate(sources: &Sources<'_>, flag: Option<&String>, gate: &Gate) -> bool {
    let gates = sources.given(flag, "aws-feature-gates").unwrap_or_default();
    let mut pairs = gates.split(',').filter_map(|pair| pair.trim().split_once('='));
    let named = pairs.rfind(|(name, _)| *name == gate.name);
    named.map_or(gate.default, |(_, word)| {
        matches!(word, "true" | "True" | "TRUE" | "t" | "T" | "1")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)], flags: &Flags) -> Result<Options, InvalidOptions> {
        Options::resolve(flags, |name| {
            let known = variables.iter().find(|(known, _)| *known == name);
            known.map(|(_, value)| (*value).to_owned())
        })
    }

    /// AW24.1.1
    #[test]
    fn a_flag_wins_over_the_environment_and_that_over_the_default() {
        let flags = Flags {
            cluster_name: Some("flag".into()),
            reserved_enis: Some("2".into()),
            ..Flags::default()
        };
        let variables = [
            ("CLUSTER_NAME", "variable"),
            ("RESERVED_ENIS", "3"),
            ("ISOLATED_VPC", "true"),
        ];
        let options = from(&variables, &flags).unwrap();
        assert_eq!((options.cluster_name.as_str(), options.reserved_enis), ("flag", 2));
        assert!(options.isolated_vpc);
        let defaults = Options::for_cluster("demo");
        assert_eq!(defaults.vm_memory_overhead, 0.075);
        assert_eq!(defaults.ami_refresh_interval, Duration::from_secs(60));
        assert!(defaults.dry_run && !defaults.zonal_shift && defaults.interruption_queue.is_none());
        let passed_over = from(
            &[("CLUSTER_NAME", "x"), ("VM_MEMORY_OVERHEAD_PERCENT", "much")],
            &Flags::default(),
        );
        assert_eq!(passed_over.unwrap().vm_memory_overhead, 0.075);
    }

    /// AW24.1.2
    #[test]
    fn wrong_settings_stop_the_program_and_are_reported_together() {
        let error = from(
            &[
                (
                    "CLUSTER_ENDPOINT",
                    "00000000000000000000000.gr7.us-west-2.eks.amazonaws.com",
                ),
                ("VM_MEMORY_OVERHEAD_PERCENT", "-0.1"),
                ("RESERVED_ENIS", "-1"),
                ("AMI_REFRESH_INTERVAL", "30s"),
                ("SUBNET_REFRESH_INTERVAL", "1s"),
            ],
            &Flags::default(),
        )
        .unwrap_err();
        for part in [
            "--cluster-name",
            "--cluster-endpoint",
            "--vm-memory-overhead-percent",
            "--reserved-enis",
            "--ami-refresh-interval",
            "--subnet-refresh-interval",
        ] {
            assert!(error.to_string().contains(part), "{part} in {error}");
        }
        let good = [
            ("CLUSTER_NAME", "x"),
            ("CLUSTER_ENDPOINT", "https://api.example.com:443/"),
        ];
        assert!(from(&good, &Flags::default()).is_ok());
    }

    /// AW24.1.3
    #[test]
    fn unknown_gates_are_passed_over_and_the_flag_counts() {
        let gate = |variable: &str, flag: Option<&str>| {
            let flags = Flags {
                aws_feature_gates: flag.map(str::to_owned),
                ..Flags::default()
            };
            let variables = [("CLUSTER_NAME", "x"), ("AWS_FEATURE_GATES", variable)];
            from(&variables, &flags).unwrap().node_class_cel
        };
        assert!(!gate("", None));
        assert!(gate("NodeClassCEL=true,Unheard=true", None));
        assert!(!gate("NodeClassCEL=true", Some("NodeClassCEL=false")));
        assert!(!gate("Unheard=true", None));
        assert!(!gate("NodeClassCEL=true,NodeClassCEL=false", None));
    }
}
