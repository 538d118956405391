//! `SCHEDULER_CONFIG`: spreads for pods that have none of their own, as kube-scheduler knows them.

use std::{fmt, str::FromStr, sync::Arc};

use api::validate::qualified_name;
use model::pod::TopologySpread;
use serde::{Deserialize, de::IgnoredAny};

/// The document as checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerConfig {
    pub default_spreads: Arc<[TopologySpread]>,
}

/// Why a document cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSchedulerConfig {
    #[error("the document cannot be read: {0}")]
    Unreadable(String),
    #[error("podTopologySpread.defaultConstraints[{index}].{field}: {problem}")]
    Constraint {
        index: usize,
        field: &'static str,
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    #[serde(default)]
    pod_topology_spread: Option<PodTopologySpread>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PodTopologySpread {
    #[serde(default)]
    default_constraints: Vec<Constraint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Constraint {
    #[serde(default)]
    max_skew: i64,
    #[serde(default)]
    topology_key: String,
    #[serde(default)]
    when_unsatisfiable: String,
    min_domains: Option<i64>,
    node_affinity_policy: Option<String>,
    node_taints_policy: Option<String>,
    label_selector: Option<IgnoredAny>,
    match_label_keys: Option<IgnoredAny>,
}

impl FromStr for SchedulerConfig {
    type Err = InvalidSchedulerConfig;

    /// An empty text is a document without constraints. What is not known is an error: a default that silently does not
    /// apply would be noticed when a zone fails.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let document: Document =
            serde_saphyr::from_str(text).map_err(|error| InvalidSchedulerConfig::Unreadable(error.to_string()))?;
        let constraints = document.pod_topology_spread.map(|spread| spread.default_constraints);
        let mut spreads: Vec<TopologySpread> = Vec::new();
        for (index, constraint) in constraints.into_iter().flatten().enumerate() {
            let spread = constraint
                .spread()
                .map_err(|(field, problem)| InvalidSchedulerConfig::Constraint { index, field, problem })?;
            let same =
                |other: &TopologySpread| other.topology_key == spread.topology_key && other.required == spread.required;
            if spreads.iter().any(same) {
                let problem = format!("{:?} has a constraint of this kind already", spread.topology_key);
                let field = "topologyKey";
                return Err(InvalidSchedulerConfig::Constraint { index, field, problem });
            }
            spreads.push(spread);
        }
        Ok(Self {
            default_spreads: spreads.into(),
        })
    }
}

impl Constraint {
    /// The first field that is wrong is the error.
    fn spread(self) -> Result<TopologySpread, (&'static str, String)> {
        let positive = |field: &'static str, number: i64| {
            let number = u32::try_from(number).ok().filter(|number| *number > 0);
            number.ok_or_else(|| (field, "has to be positive".to_owned()))
        };
        let honors = |field: &'static str, policy: Option<&str>, default: bool| match policy {
            None => Ok(default),
            Some("Honor") => Ok(true),
            Some("Ignore") => Ok(false),
            Some(other) => Err((field, format!("{other:?} is neither Honor nor Ignore"))),
        };
        let deduced = "is deduced for each pod and cannot be set".to_owned();
        let max_skew = positive("maxSkew", self.max_skew)?;
        if self.topology_key.is_empty() {
            return Err(("topologyKey", "is missing".to_owned()));
        }
        qualified_name(&self.topology_key).map_err(|problem| ("topologyKey", problem))?;
        let required = match self.when_unsatisfiable.as_str() {
            "DoNotSchedule" => true,
            "ScheduleAnyway" => false,
            other => {
                let problem = format!("{other:?} is neither DoNotSchedule nor ScheduleAnyway");
                return Err(("whenUnsatisfiable", problem));
            }
        };
        if self.label_selector.is_some() {
            return Err(("labelSelector", deduced));
        }
        if self.match_label_keys.is_some() {
            return Err(("matchLabelKeys", deduced));
        }
        Ok(TopologySpread {
            topology_key: self.topology_key,
            max_skew,
            min_domains: self
                .min_domains
                .map(|least| positive("minDomains", least))
                .transpose()?,
            required,
            selector: None,
            match_label_keys: Vec::new(),
            honor_affinity: honors("nodeAffinityPolicy", self.node_affinity_policy.as_deref(), true)?,
            honor_taints: honors("nodeTaintsPolicy", self.node_taints_policy.as_deref(), false)?,
        })
    }
}

/// What is in force, for the log.
impl fmt::Display for SchedulerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, spread) in self.default_spreads.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let action = if spread.required {
                "DoNotSchedule"
            } else {
                "ScheduleAnyway"
            };
            write!(
                f,
                "{separator}{} maxSkew={} {action}",
                spread.topology_key, spread.max_skew
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(constraints: &str) -> Result<SchedulerConfig, InvalidSchedulerConfig> {
        format!("podTopologySpread:\n  defaultConstraints:\n{constraints}").parse()
    }

    /// SC15.16.10: every field that may be set arrives.
    #[test]
    fn constraints_are_read_as_they_are_written() {
        let config = with(
            "  - {maxSkew: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, minDomains: 3,
                nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor}
  - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}",
        )
        .unwrap();
        let [first, second] = &*config.default_spreads else {
            panic!("{config:?}")
        };
        assert_eq!((first.max_skew, first.min_domains, first.required), (2, Some(3), true));
        assert_eq!((first.honor_affinity, first.honor_taints), (false, true));
        assert_eq!(
            (second.required, second.honor_affinity, second.honor_taints),
            (false, true, false)
        );
        assert_eq!(
            config.to_string(),
            "topology.kubernetes.io/zone maxSkew=2 DoNotSchedule, topology.kubernetes.io/zone maxSkew=1 ScheduleAnyway"
        );
    }

    #[test]
    fn json_is_read_and_nothing_is_no_constraint() {
        let json = r#"{"podTopologySpread": {"defaultConstraints":
            [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}]}}"#;
        assert_eq!(json.parse::<SchedulerConfig>().unwrap().default_spreads.len(), 1);
        for text in ["", "  \n", "{}", "podTopologySpread: {}"] {
            assert_eq!(text.parse(), Ok(SchedulerConfig::default()), "{text:?}");
        }
    }

    /// SC15.16.11
    #[test]
    fn what_is_wrong_is_named() {
        let good = "maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule";
        for (constraint, field) in [
            (
                "maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule",
                "maxSkew",
            ),
            (
                "maxSkew: -1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule",
                "maxSkew",
            ),
            ("maxSkew: 1, whenUnsatisfiable: DoNotSchedule", "topologyKey"),
            (
                "maxSkew: 1, topologyKey: no/such/key, whenUnsatisfiable: DoNotSchedule",
                "topologyKey",
            ),
            (
                "maxSkew: 1, topologyKey: zone, whenUnsatisfiable: Never",
                "whenUnsatisfiable",
            ),
            ("maxSkew: 1, topologyKey: zone", "whenUnsatisfiable"),
            (
                &format!("{good}, labelSelector: {{matchLabels: {{app: web}}}}"),
                "labelSelector",
            ),
            (&format!("{good}, matchLabelKeys: [app]"), "matchLabelKeys"),
            (&format!("{good}, minDomains: 0"), "minDomains"),
            (&format!("{good}, nodeTaintsPolicy: Maybe"), "nodeTaintsPolicy"),
        ] {
            match with(&format!("  - {{{constraint}}}")) {
                Err(InvalidSchedulerConfig::Constraint {
                    index: 0, field: found, ..
                }) => assert_eq!(found, field),
                other => panic!("{constraint}: {other:?}"),
            }
        }
        let twice = with(&format!("  - {{{good}}}\n  - {{{good}}}"));
        assert!(
            matches!(twice, Err(InvalidSchedulerConfig::Constraint { index: 1, .. })),
            "{twice:?}"
        );
        for text in ["profiles: []", "podTopologySpread: {other: 1}", "- 1", "{"] {
            let read = text.parse::<SchedulerConfig>();
            assert!(
                matches!(read, Err(InvalidSchedulerConfig::Unreadable(_))),
                "{text}: {read:?}"
            );
        }
        let unknown = with(&format!("  - {{{good}, weight: 1}}"));
        assert!(
            matches!(unknown, Err(InvalidSchedulerConfig::Unreadable(_))),
            "{unknown:?}"
        );
    }
}
