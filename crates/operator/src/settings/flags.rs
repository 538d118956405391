//! The flags as the user wrote them. What they mean is decided in the parent module, so that one rule covers flag and
//! environment alike.

use clap::Args;

use super::gates;

/// Upstream's flags. Each can be given as an environment variable too: `--metrics-port` as `METRICS_PORT`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Settings (flag over environment variable over default)")]
pub struct Flags {
    /// Name of the Service in front of webhooks, and with -cert the name of the Secret with their certificates. [default: karpenter]
    #[arg(long, value_name = "NAME")]
    pub karpenter_service: Option<String>,
    /// Address of every port that is opened. [default: 0.0.0.0]
    #[arg(long, value_name = "ADDRESS")]
    pub bind_address: Option<String>,
    /// Port of /metrics. [default: 8080]
    #[arg(long, value_name = "PORT")]
    pub metrics_port: Option<String>,
    /// Port of /healthz and /readyz. [default: 8081]
    #[arg(long, value_name = "PORT")]
    pub health_probe_port: Option<String>,
    /// Steady rate of requests to the API server. [default: 200]
    #[arg(long, value_name = "N")]
    pub kube_client_qps: Option<String>,
    /// Requests that may exceed the rate for a moment. [default: 300]
    #[arg(long, value_name = "N")]
    pub kube_client_burst: Option<String>,
    /// Add the routes that profilers look for to the metrics port. [default: false]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub enable_profiling: Option<String>,
    /// Accepted for compatibility: a standby fills no caches before it leads, whatever this says. [default: true]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub disable_controller_warmup: Option<String>,
    /// Run without a lease, as a single replica. [default: false]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub disable_leader_election: Option<String>,
    /// Leave out metrics per pod, node and pool. [default: false]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub disable_cluster_state_observability: Option<String>,
    /// Name of the lease. [default: karpenter-leader-election]
    #[arg(long, value_name = "NAME")]
    pub leader_election_name: Option<String>,
    /// Namespace of the lease. [default: the program's own]
    #[arg(long, value_name = "NAMESPACE")]
    pub leader_election_namespace: Option<String>,
    /// Memory limit of the container, in bytes. Accepted for compatibility: there is no collector to tell. [default: -1, none]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub memory_limit: Option<String>,
    /// CPU request of the container, in millicores. Accepted for compatibility: work is not split by it. [default: 1000]
    #[arg(long, value_name = "MILLICORES", allow_hyphen_values = true)]
    pub cpu_requests: Option<String>,
    /// debug, info or error. SIGUSR1 switches to debug while the program runs, SIGUSR2 back. [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// Where log lines go: stdout, stderr or files. [default: stdout]
    #[arg(long, value_name = "PATHS")]
    pub log_output_paths: Option<String>,
    /// Where complaints of the logger itself go. [default: stderr]
    #[arg(long, value_name = "PATHS")]
    pub log_error_output_paths: Option<String>,
    /// The longest time that pods are gathered for one round. [default: 10s]
    #[arg(long, value_name = "DURATION")]
    pub batch_max_duration: Option<String>,
    /// A round starts when no pod has come for this long. [default: 1s]
    #[arg(long, value_name = "DURATION")]
    pub batch_idle_duration: Option<String>,
    /// Respect or Ignore preferences of pods. [default: Respect]
    #[arg(long, value_name = "POLICY")]
    pub preference_policy: Option<String>,
    /// Strict or BestEffort about minValues. [default: Strict]
    #[arg(long, value_name = "POLICY")]
    pub min_values_policy: Option<String>,
    /// Dollars per hour that a node costs beside its price; more makes fewer and larger nodes. [default: 0]
    #[arg(long, value_name = "DOLLARS")]
    pub node_surcharge: Option<String>,
    /// Leave resource claims of pods out of account. [default: true]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub ignore_dra_requests: Option<String>,
    /// Spreads for pods that have none, as YAML or JSON. [default: none]
    #[arg(long, value_name = "DOCUMENT")]
    pub scheduler_config: Option<String>,
    /// Follow Provisioners, AWSNodeTemplates and Machines: auto (where the cluster knows them), true or false. [default: auto]
    #[arg(long, value_name = "CHOICE")]
    pub legacy_apis: Option<String>,
    /// Serve the webhooks of the time of Provisioners: defaults, refusals at apply time, conversion between v1beta1 and v1. [default: false]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub legacy_webhooks: Option<String>,
    /// Port of the webhooks. [default: 8443]
    #[arg(long, value_name = "PORT")]
    pub webhook_port: Option<String>,
    #[arg(long, value_name = "GATES", help = gates::help())]
    pub feature_gates: Option<String>,
}
