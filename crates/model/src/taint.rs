//! Taints keep pods off a node; tolerations let some of them on.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Effect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

impl Effect {
    pub const ALL: [Effect; 3] = [Effect::NoSchedule, Effect::PreferNoSchedule, Effect::NoExecute];

    pub fn as_str(self) -> &'static str {
        match self {
            Effect::NoSchedule => "NoSchedule",
            Effect::PreferNoSchedule => "PreferNoSchedule",
            Effect::NoExecute => "NoExecute",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a taint effect: use NoSchedule, PreferNoSchedule or NoExecute")]
pub struct UnknownEffect(pub String);

impl FromStr for Effect {
    type Err = UnknownEffect;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Effect::ALL
            .into_iter()
            .find(|effect| effect.as_str() == text)
            .ok_or_else(|| UnknownEffect(text.to_owned()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    pub key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    pub effect: Effect,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Timestamp>,
}

/// The taint a node has to join with; it goes when the node is registered.
pub const UNREGISTERED: &str = "karpenter.sh/unregistered";
/// The taint of a node that was made before its kubelet reported, and that pods are bound to meanwhile.
pub const NOT_READY: &str = "karpenter.sh/not-ready";
/// The taint of a node that is about to go.
pub const DISRUPTED: &str = "karpenter.sh/disrupted";
/// Keys under this prefix are put on young nodes by readiness gates, with any effect.
const READINESS_PREFIX: &str = "readiness.k8s.io/";

impl Taint {
    pub fn new(key: impl Into<String>, value: impl Into<String>, effect: Effect) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
            effect,
            time_added: None,
        }
    }

    /// See [`UNREGISTERED`].
    pub fn unregistered() -> Self {
        Self::new(UNREGISTERED, "", Effect::NoExecute)
    }

    /// See [`DISRUPTED`].
    pub fn disrupted() -> Self {
        Self::new(DISRUPTED, "", Effect::NoSchedule)
    }

    /// Two taints are the same taint when key and effect agree, whatever their values: a node cannot have both.
    pub fn same_kind(&self, other: &Taint) -> bool {
        self.key == other.key && self.effect == other.effect
    }

    /// Whether the taint belongs to the first minutes of any node and says nothing about its later life.
    pub fn is_ephemeral(&self) -> bool {
        matches!(
            (self.key.as_str(), self.effect),
            ("node.kubernetes.io/not-ready", Effect::NoSchedule | Effect::NoExecute)
                | (
                    "node.kubernetes.io/unreachable" | "node.cloudprovider.kubernetes.io/uninitialized" | NOT_READY,
                    Effect::NoSchedule
                )
                | (UNREGISTERED, Effect::NoExecute)
        ) || self.key.starts_with(READINESS_PREFIX)
    }

    pub fn is_tolerated_by(&self, tolerations: &[Toleration]) -> bool {
        tolerations.iter().any(|toleration| toleration.tolerates(self))
    }
}

/// `key=value:Effect`, as kubectl writes it.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        if !self.value.is_empty() {
            write!(f, "={}", self.value)?;
        }
        write!(f, ":{}", self.effect)
    }
}

/// How a toleration looks at a taint's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TolerationOperator {
    #[default]
    Equal,
    Exists,
    /// Tolerates taints whose value is a number below the toleration's.
    Lt,
    /// Tolerates taints whose value is a number above the toleration's.
    Gt,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// The empty key tolerates all keys, if the operator is `Exists`.
    pub key: String,
    pub operator: TolerationOperator,
    pub value: String,
    /// None tolerates all effects.
    pub effect: Option<Effect>,
    /// How long a pod stays on a node after a `NoExecute` taint appeared. Does not matter for placement.
    pub toleration_seconds: Option<i64>,
}

impl Toleration {
    /// Tolerates this key whatever the value and the effect.
    pub fn of_key(key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            operator: TolerationOperator::Exists,
            ..Self::default()
        }
    }

    /// Tolerates everything.
    pub fn of_all() -> Self {
        Self::of_key("")
    }

    /// Tolerates every taint that merely discourages.
    pub fn of_prefer_no_schedule() -> Self {
        Self {
            effect: Some(Effect::PreferNoSchedule),
            ..Self::of_all()
        }
    }

    pub fn tolerates(&self, taint: &Taint) -> bool {
        if self.effect.is_some_and(|effect| effect != taint.effect) {
            return false;
        }
        if !self.key.is_empty() && self.key != taint.key {
            return false;
        }
        match self.operator {
            TolerationOperator::Exists => true,
            // An empty key means all keys only together with `Exists`; the API server lets no other one pass.
            TolerationOperator::Equal => !self.key.is_empty() && self.value == taint.value,
            TolerationOperator::Lt => self.numbers(taint).is_some_and(|(ours, theirs)| theirs < ours),
            TolerationOperator::Gt => self.numbers(taint).is_some_and(|(ours, theirs)| theirs > ours),
        }
    }

    fn numbers(&self, taint: &Taint) -> Option<(i64, i64)> {
        Some((decimal(&self.value)?, decimal(&taint.value)?))
    }
}

/// Numbers that Kubernetes compares are written in plain decimal form: no plus sign and no leading zeros, so that one
/// number has one text.
fn decimal(text: &str) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// The first taint that none of the tolerations covers.
pub fn untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    taints.iter().find(|taint| !taint.is_tolerated_by(tolerations))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toleration(key: &str, operator: TolerationOperator, value: &str, effect: Option<Effect>) -> Toleration {
        Toleration {
            key: key.into(),
            operator,
            value: value.into(),
            effect,
            toleration_seconds: None,
        }
    }

    #[track_caller]
    fn check(toleration: &Toleration, taint: &Taint, expected: bool) {
        assert_eq!(toleration.tolerates(taint), expected, "{toleration:?} against {taint}");
    }

    /// SC15.10.1, SC15.10.2
    #[test]
    fn tolerations_match_as_in_kubernetes() {
        use TolerationOperator::{Equal, Exists};
        let taint = Taint::new("team", "blue", Effect::NoSchedule);
        check(
            &toleration("team", Equal, "blue", Some(Effect::NoSchedule)),
            &taint,
            true,
        );
        check(&toleration("team", Equal, "blue", None), &taint, true);
        check(&toleration("team", Exists, "", Some(Effect::NoSchedule)), &taint, true);
        check(&toleration("team", Exists, "", None), &taint, true);
        check(&toleration("", Exists, "", None), &taint, true);
        check(&toleration("", Exists, "", Some(Effect::NoExecute)), &taint, false);
        check(&toleration("team", Equal, "", None), &taint, false);
        check(&toleration("team", Equal, "red", None), &taint, false);
        check(&toleration("other", Exists, "", None), &taint, false);
        check(
            &toleration("team", Equal, "blue", Some(Effect::NoExecute)),
            &taint,
            false,
        );
        check(&toleration("", Equal, "blue", None), &taint, false);
    }

    #[test]
    fn numeric_tolerations_compare_plain_decimal_numbers() {
        use TolerationOperator::{Gt, Lt};
        let taint = Taint::new("failure-probability", "5", Effect::NoSchedule);
        check(&toleration("failure-probability", Lt, "10", None), &taint, true);
        check(&toleration("failure-probability", Lt, "5", None), &taint, false);
        check(&toleration("failure-probability", Gt, "4", None), &taint, true);
        check(&toleration("failure-probability", Gt, "-1", None), &taint, true);
        check(&toleration("failure-probability", Lt, "010", None), &taint, false);
        check(&toleration("failure-probability", Lt, "ten", None), &taint, false);
        check(
            &toleration("failure-probability", Lt, "10", None),
            &Taint::new("failure-probability", "x", Effect::NoSchedule),
            false,
        );
    }

    /// SC15.10.9
    #[test]
    fn ephemeral_taints_are_a_fixed_list_and_one_prefix() {
        use Effect::{NoExecute, NoSchedule, PreferNoSchedule};
        for (key, effect, expected) in [
            ("node.kubernetes.io/not-ready", NoSchedule, true),
            ("node.kubernetes.io/not-ready", NoExecute, true),
            ("node.kubernetes.io/not-ready", PreferNoSchedule, false),
            ("node.kubernetes.io/unreachable", NoSchedule, true),
            ("node.kubernetes.io/unreachable", NoExecute, false),
            ("node.cloudprovider.kubernetes.io/uninitialized", NoSchedule, true),
            (UNREGISTERED, NoExecute, true),
            (UNREGISTERED, NoSchedule, false),
            ("readiness.k8s.io/network", PreferNoSchedule, true),
            ("example.com/readiness.k8s.io/", NoSchedule, false),
            ("team", NoSchedule, false),
        ] {
            assert_eq!(
                Taint::new(key, "whatever", effect).is_ephemeral(),
                expected,
                "{key}:{effect}"
            );
        }
    }

    #[test]
    fn the_first_untolerated_taint_is_named() {
        let taints = [
            Taint::new("a", "", Effect::NoSchedule),
            Taint::new("b", "1", Effect::NoExecute),
        ];
        assert_eq!(
            untolerated(&taints, &[Toleration::of_key("a")]).unwrap().to_string(),
            "b=1:NoExecute"
        );
        assert_eq!(untolerated(&taints, &[Toleration::of_all()]), None);
        assert_eq!(untolerated(&[], &[]), None);
    }

    #[test]
    fn taints_are_the_same_by_key_and_effect() {
        let taint = Taint::new("a", "1", Effect::NoSchedule);
        assert!(taint.same_kind(&Taint::new("a", "2", Effect::NoSchedule)));
        assert!(!taint.same_kind(&Taint::new("a", "1", Effect::NoExecute)));
    }
}
