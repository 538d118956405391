//! Settings, parsed once: flag over environment over default.
//!
//! Flags, variables and defaults are upstream's, and so are its habits: a flag that cannot be read stops the program, a
//! variable that cannot be read is passed over, and all complaints come together. [`flags`] is the table; this file
//! turns it into values.

mod flags;
mod gates;
mod retired;
mod scheduler_config;

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use scheduler::{MinValuesPolicy, PreferencePolicy, Surcharge};
use settings::Sources;

pub use flags::Flags;
pub use gates::{FeatureGates, GATES, Gate};
pub use retired::{RETIRED as RETIRED_VARIABLES, warnings as retired_variables};
pub use scheduler_config::{InvalidSchedulerConfig, SchedulerConfig};

/// How much the log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Debug,
    Info,
    Error,
}

/// Whether objects of the time of Provisioners are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LegacyApis {
    /// Where the cluster knows their kinds when the controllers start, and lets us read them.
    #[default]
    Auto,
    On,
    Off,
}

impl LegacyApis {
    /// The words of the setting. The first stands for the default.
    const WORDS: [(&str, Self); 4] = [
        ("auto", Self::Auto),
        ("", Self::Auto),
        ("true", Self::On),
        ("false", Self::Off),
    ];

    /// What a word of the setting means. With one that means nothing the program does not start.
    pub fn of(word: &str) -> Option<Self> {
        let mut words = Self::WORDS.into_iter();
        words.find_map(|(known, choice)| (known == word).then_some(choice))
    }
}

/// Everything that can be set, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where probes, metrics and webhooks are served. All addresses by default: kubelets and scrapers come from outside.
    pub bind_address: IpAddr,
    pub metrics_port: u16,
    pub health_probe_port: u16,
    pub kube_client_qps: u32,
    pub kube_client_burst: u32,
    pub enable_profiling: bool,
    pub warm_up: bool,
    pub leader_election: bool,
    pub leader_election_name: String,
    /// Empty means the namespace that the program runs in.
    pub leader_election_namespace: String,
    pub observe_cluster_state: bool,
    /// Bytes; `None` when there is no limit.
    pub memory_limit: Option<u64>,
    /// Millicores; scales how much is done at once.
    pub cpu_requests: u32,
    pub log_level: LogLevel,
    pub log_output_paths: Vec<String>,
    pub log_error_output_paths: Vec<String>,
    pub batch_max: Duration,
    pub batch_idle: Duration,
    pub preference_policy: PreferencePolicy,
    pub node_surcharge: Surcharge,
    pub min_values_policy: MinValuesPolicy,
    pub ignore_dra_requests: bool,
    pub feature_gates: FeatureGates,
    pub scheduler_config: SchedulerConfig,
    pub legacy_apis: LegacyApis,
    pub legacy_webhooks: bool,
    pub webhook_port: u16,
    /// The Service in front of the webhooks; empty for that of the chart.
    pub karpenter_service: String,
}

/// Why the program does not start: every setting that is wrong, together.
#[derive(Debug, thiserror::Error)]
#[error("{}", complaints.join("; "))]
pub struct InvalidSettings {
    pub complaints: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self::resolve(&Flags::default(), |_| None).expect("the defaults are valid")
    }
}

impl Settings {
    /// Puts flags, environment and defaults together. The environment is an argument so that tests need none.
    pub fn resolve(flags: &Flags, variable: impl Fn(&str) -> Option<String>) -> Result<Self, InvalidSettings> {
        let mut sources = Sources::new(&variable);
        let cpu_requests: i64 = sources.value(flags.cpu_requests.as_ref(), "cpu-requests", 1000);
        let memory_limit: i64 = sources.value(flags.memory_limit.as_ref(), "memory-limit", -1);
        let settings = Self {
            bind_address: sources.value(
                flags.bind_address.as_ref(),
                "bind-address",
                Ipv4Addr::UNSPECIFIED.into(),
            ),
            metrics_port: sources.value(flags.metrics_port.as_ref(), "metrics-port", 8080),
            health_probe_port: sources.value(flags.health_probe_port.as_ref(), "health-probe-port", 8081),
            kube_client_qps: sources.value(flags.kube_client_qps.as_ref(), "kube-client-qps", 200),
            kube_client_burst: sources.value(flags.kube_client_burst.as_ref(), "kube-client-burst", 300),
            enable_profiling: sources.truth(flags.enable_profiling.as_ref(), "enable-profiling", false),
            warm_up: !sources.truth(
                flags.disable_controller_warmup.as_ref(),
                "disable-controller-warmup",
                true,
            ),
            leader_election: !sources.truth(flags.disable_leader_election.as_ref(), "disable-leader-election", false),
            leader_election_name: sources.text(
                flags.leader_election_name.as_ref(),
                "leader-election-name",
                "karpenter-leader-election",
            ),
            leader_election_namespace: sources.text(
                flags.leader_election_namespace.as_ref(),
                "leader-election-namespace",
                "",
            ),
            observe_cluster_state: !sources.truth(
                flags.disable_cluster_state_observability.as_ref(),
                "disable-cluster-state-observability",
                false,
            ),
            memory_limit: u64::try_from(memory_limit).ok().filter(|bytes| *bytes > 0),
            cpu_requests: u32::try_from(cpu_requests)
                .ok()
                .filter(|millis| *millis > 0)
                .unwrap_or(1000),
            log_level: log_level(&mut sources, flags),
            log_output_paths: sources.list(flags.log_output_paths.as_ref(), "log-output-paths", "stdout"),
            log_error_output_paths: sources.list(
                flags.log_error_output_paths.as_ref(),
                "log-error-output-paths",
                "stderr",
            ),
            batch_max: sources.duration(flags.batch_max_duration.as_ref(), "batch-max-duration", "10s"),
            batch_idle: sources.duration(flags.batch_idle_duration.as_ref(), "batch-idle-duration", "1s"),
            preference_policy: preference_policy(&mut sources, flags),
            node_surcharge: sources.value(flags.node_surcharge.as_ref(), "node-surcharge", Surcharge::default()),
            min_values_policy: min_values_policy(&mut sources, flags),
            ignore_dra_requests: sources.truth(flags.ignore_dra_requests.as_ref(), "ignore-dra-requests", true),
            feature_gates: feature_gates(&mut sources, flags),
            scheduler_config: scheduler_config(&mut sources, flags),
            legacy_apis: sources.word(flags.legacy_apis.as_ref(), "legacy-apis", &LegacyApis::WORDS),
            legacy_webhooks: sources.truth(flags.legacy_webhooks.as_ref(), "legacy-webhooks", false),
            webhook_port: sources.value(flags.webhook_port.as_ref(), "webhook-port", 8443),
            karpenter_service: sources.text(flags.karpenter_service.as_ref(), "karpenter-service", ""),
        };
        if sources.complaints.is_empty() {
            Ok(settings)
        } else {
            Err(InvalidSettings {
                complaints: sources.complaints,
            })
        }
    }
}

impl Settings {
    /// One line for every setting that asks for something that is not done. Nobody should find out by waiting.
    pub fn warnings(&self) -> Vec<String> {
        let gates = &self.feature_gates;
        let asked = [
            (
                self.warm_up,
                "--disable-controller-warmup=false",
                "a standby lists everything when it takes over",
            ),
            (
                self.batch_idle > self.batch_max,
                "--batch-idle-duration beyond --batch-max-duration",
                "a round starts after the latter",
            ),
            (
                gates.proactive_binding && !gates.node_pre_registration,
                "feature gate ProactiveBinding without NodePreRegistration",
                "pods are bound to nodes that are there",
            ),
        ];
        let lines = asked.into_iter().filter(|(is_asked, ..)| *is_asked);
        lines
            .map(|(_, name, instead)| format!("{name} has no effect: {instead}"))
            .collect()
    }
}

fn log_level(sources: &mut Sources<'_>, flags: &Flags) -> LogLevel {
    let known = [
        ("info", LogLevel::Info),
        ("", LogLevel::Info),
        ("debug", LogLevel::Debug),
        ("error", LogLevel::Error),
    ];
    sources.word(flags.log_level.as_ref(), "log-level", &known)
}

fn preference_policy(sources: &mut Sources<'_>, flags: &Flags) -> PreferencePolicy {
    let known = [
        ("Respect", PreferencePolicy::Respect),
        ("Ignore", PreferencePolicy::Ignore),
    ];
    sources.word(flags.preference_policy.as_ref(), "preference-policy", &known)
}

fn min_values_policy(sources: &mut Sources<'_>, flags: &Flags) -> MinValuesPolicy {
    let known = [
        ("Strict", MinValuesPolicy::Strict),
        ("BestEffort", MinValuesPolicy::BestEffort),
    ];
    sources.word(flags.min_values_policy.as_ref(), "min-values-policy", &known)
}

fn feature_gates(sources: &mut Sources<'_>, flags: &Flags) -> FeatureGates {
    let text = sources
        .given(flags.feature_gates.as_ref(), "feature-gates")
        .unwrap_or_default();
    text.parse().unwrap_or_else(|error: gates::MalformedGates| {
        sources.complain("feature-gates", error);
        FeatureGates::default()
    })
}

fn scheduler_config(sources: &mut Sources<'_>, flags: &Flags) -> SchedulerConfig {
    let text = sources
        .given(flags.scheduler_config.as_ref(), "scheduler-config")
        .unwrap_or_default();
    text.parse().unwrap_or_else(|error: InvalidSchedulerConfig| {
        sources.complain("scheduler-config", error);
        SchedulerConfig::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)], flags: &Flags) -> Result<Settings, InvalidSettings> {
        Settings::resolve(flags, |name| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_flag_wins_over_the_environment_and_that_over_the_default() {
        let flags = Flags {
            metrics_port: Some("1".into()),
            ..Flags::default()
        };
        let settings = from(&[("METRICS_PORT", "2"), ("HEALTH_PROBE_PORT", "3")], &flags).unwrap();
        assert_eq!(
            (
                settings.metrics_port,
                settings.health_probe_port,
                settings.kube_client_qps
            ),
            (1, 3, 200)
        );
    }

    #[test]
    fn a_variable_that_cannot_be_read_is_passed_over() {
        let settings = from(
            &[("METRICS_PORT", "x"), ("BATCH_MAX_DURATION", "1d")],
            &Flags::default(),
        )
        .unwrap();
        assert_eq!(
            (settings.metrics_port, settings.batch_max),
            (8080, Duration::from_secs(10))
        );
    }

    #[test]
    fn wrong_flags_and_words_are_reported_together() {
        let flags = Flags {
            metrics_port: Some("x".into()),
            batch_idle_duration: Some("1d".into()),
            enable_profiling: Some("T".into()),
            ..Flags::default()
        };
        let error = from(&[("LOG_LEVEL", "loud"), ("PREFERENCE_POLICY", "ignore")], &flags).unwrap_err();
        for part in [
            "--metrics-port",
            "--batch-idle-duration",
            "--enable-profiling",
            "--log-level",
            "--preference-policy",
        ] {
            assert!(error.to_string().contains(part), "{part} in {error}");
        }
    }

    /// SC15.16.11
    #[test]
    fn a_scheduler_configuration_that_cannot_be_used_stops_the_program() {
        let zonal = "podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}";
        let settings = from(&[("SCHEDULER_CONFIG", zonal)], &Flags::default()).unwrap();
        assert_eq!(settings.scheduler_config.default_spreads.len(), 1);
        let error = from(&[("SCHEDULER_CONFIG", "profiles: []")], &Flags::default()).unwrap_err();
        assert!(error.to_string().contains("--scheduler-config"), "{error}");
    }

    #[test]
    fn what_has_no_effect_is_said() {
        let warned = |name: &str, value: &str| {
            let settings = from(&[(name, value)], &Flags::default()).expect("nothing of this stops the program");
            settings.warnings().join("; ")
        };
        assert_eq!(warned("METRICS_PORT", "8080"), "");
        assert!(
            warned("DISABLE_CONTROLLER_WARMUP", "false").starts_with("--disable-controller-warmup=false has no effect")
        );
        assert!(warned("BATCH_IDLE_DURATION", "1m").starts_with("--batch-idle-duration beyond"));
        assert!(warned("FEATURE_GATES", "ProactiveBinding=true").contains("NodePreRegistration"));
        // What is there is not said to be missing.
        let all =
            "SpotToSpotConsolidation=true,NodeRepair=true,NodeOverlay=true,StaticCapacity=true,CapacityBuffer=true";
        assert_eq!(warned("FEATURE_GATES", all), "");
    }

    #[test]
    fn provisioners_are_followed_where_they_are_unless_told_otherwise() {
        let choice = |value: &str| from(&[("LEGACY_APIS", value)], &Flags::default()).map(|set| set.legacy_apis);
        assert_eq!(Settings::default().legacy_apis, LegacyApis::Auto);
        assert_eq!(choice("true").unwrap(), LegacyApis::On);
        assert_eq!(choice("false").unwrap(), LegacyApis::Off);
        assert!(choice("maybe").unwrap_err().to_string().contains("--legacy-apis"));
    }

    #[test]
    fn booleans_of_the_environment_are_gos() {
        let settings = from(
            &[("DISABLE_LEADER_ELECTION", "T"), ("ENABLE_PROFILING", "1")],
            &Flags::default(),
        )
        .unwrap();
        assert!(!settings.leader_election && settings.enable_profiling);
    }

    #[test]
    fn nonsense_cpu_requests_and_memory_limits_mean_none() {
        let settings = from(&[("CPU_REQUESTS", "-5"), ("MEMORY_LIMIT", "0")], &Flags::default()).unwrap();
        assert_eq!((settings.cpu_requests, settings.memory_limit), (1000, None));
    }

    /// operations.md 3.2: name, and the default where it can be read off the settings.
    #[test]
    fn every_setting_of_upstream_is_there_with_its_default() {
        use clap::Args as _;

        let command = Flags::augment_args(clap::Command::new("controller"));
        let known: Vec<_> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
        for name in [
            "karpenter-service",
            "metrics-port",
            "health-probe-port",
            "kube-client-qps",
            "kube-client-burst",
            "enable-profiling",
            "disable-controller-warmup",
            "disable-leader-election",
            "disable-cluster-state-observability",
            "leader-election-name",
            "leader-election-namespace",
            "memory-limit",
            "cpu-requests",
            "log-level",
            "log-output-paths",
            "log-error-output-paths",
            "batch-max-duration",
            "batch-idle-duration",
            "preference-policy",
            "min-values-policy",
            "ignore-dra-requests",
            "feature-gates",
        ] {
            assert!(known.contains(&name), "--{name}");
        }
        let settings = Settings::default();
        assert_eq!((settings.metrics_port, settings.health_probe_port), (8080, 8081));
        assert_eq!((settings.kube_client_qps, settings.kube_client_burst), (200, 300));
        assert_eq!(
            (settings.batch_max, settings.batch_idle),
            (Duration::from_secs(10), Duration::from_secs(1))
        );
        assert_eq!(settings.leader_election_name, "karpenter-leader-election");
        assert!(settings.leader_election && settings.leader_election_namespace.is_empty());
        assert!(!settings.enable_profiling && !settings.warm_up && settings.observe_cluster_state);
        assert!(settings.ignore_dra_requests);
        assert_eq!((settings.legacy_webhooks, settings.webhook_port), (false, 8443));
        assert_eq!((settings.memory_limit, settings.cpu_requests), (None, 1000));
        assert_eq!(settings.log_level, LogLevel::Info);
        assert_eq!(settings.log_output_paths, ["stdout"]);
        assert_eq!(settings.log_error_output_paths, ["stderr"]);
        assert_eq!(settings.preference_policy, PreferencePolicy::Respect);
        assert_eq!(settings.min_values_policy, MinValuesPolicy::Strict);
    }
}
