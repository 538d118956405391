//! How many of a pool's nodes may be disrupted at a time.

mod schedule;

use std::{collections::BTreeSet, fmt, str::FromStr};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use schedule::{InvalidSchedule, Schedule};

/// Why a node is disrupted although nothing is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DisruptionReason {
    Underutilized,
    Empty,
    Drifted,
}

impl DisruptionReason {
    pub const ALL: [DisruptionReason; 3] = [
        DisruptionReason::Underutilized,
        DisruptionReason::Empty,
        DisruptionReason::Drifted,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            DisruptionReason::Underutilized => "Underutilized",
            DisruptionReason::Empty => "Empty",
            DisruptionReason::Drifted => "Drifted",
        }
    }
}

impl fmt::Display for DisruptionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a disruption reason: use Underutilized, Empty or Drifted")]
pub struct UnknownReason(pub String);

impl FromStr for DisruptionReason {
    type Err = UnknownReason;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|reason| reason.as_str() == text)
            .ok_or_else(|| UnknownReason(text.to_owned()))
    }
}

/// A number of nodes, or a share of the pool's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeShare {
    Count(u32),
    Percent(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a number of nodes: use 5 or 10%")]
pub struct InvalidShare(pub String);

impl FromStr for NodeShare {
    type Err = InvalidShare;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (digits, percent) = text.strip_suffix('%').map_or((text, false), |digits| (digits, true));
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(InvalidShare(text.to_owned()));
        }
        let number = digits.parse().unwrap_or(UNBOUNDED).min(UNBOUNDED);
        Ok(if percent {
            NodeShare::Percent(number)
        } else {
            NodeShare::Count(number)
        })
    }
}

impl fmt::Display for NodeShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeShare::Count(nodes) => write!(f, "{nodes}"),
            NodeShare::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// When a budget counts: from each hit of the schedule for the duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    pub schedule: Schedule,
    pub duration: SignedDuration,
}

/// One entry of a pool's `disruption.budgets`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    pub nodes: NodeShare,
    /// `None` applies to every reason. An empty set applies to none.
    pub reasons: Option<BTreeSet<DisruptionReason>>,
    /// `None` is always.
    pub window: Option<Window>,
}

/// What a budget allows that does not count now: as many as upstream's 32-bit integers go.
pub const UNBOUNDED: u32 = i32::MAX as u32;

impl Budget {
    /// Counts at all times and for all reasons.
    pub fn always(nodes: NodeShare) -> Self {
        Self {
            nodes,
            reasons: None,
            window: None,
        }
    }

    pub fn applies_to(&self, reason: DisruptionReason) -> bool {
        self.reasons.as_ref().is_none_or(|reasons| reasons.contains(&reason))
    }

    /// Whether a window is open: the schedule's first hit after (now − duration) has happened already.
    pub fn is_active(&self, now: Timestamp) -> bool {
        let Some(window) = &self.window else { return true };
        let since = now.checked_sub(window.duration).unwrap_or(Timestamp::MIN);
        window.schedule.next_after(since).is_some_and(|hit| hit <= now)
    }

    /// How many of the pool's nodes may be disrupted at once. A share is rounded up.
    pub fn allowed(&self, now: Timestamp, pool_nodes: usize) -> u32 {
        if !self.is_active(now) {
            return UNBOUNDED;
        }
        match self.nodes {
            NodeShare::Count(nodes) => nodes,
            NodeShare::Percent(percent) => {
                let share = (u64::from(percent) * pool_nodes as u64).div_ceil(100);
                u32::try_from(share).unwrap_or(UNBOUNDED).min(UNBOUNDED)
            }
        }
    }
}

/// What all of a pool's budgets allow together for one reason: the least of those that apply.
pub fn allowed(budgets: &[Budget], reason: DisruptionReason, now: Timestamp, pool_nodes: usize) -> u32 {
    let applying = budgets.iter().filter(|budget| budget.applies_to(reason));
    applying
        .map(|budget| budget.allowed(now, pool_nodes))
        .min()
        .unwrap_or(UNBOUNDED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn budget(nodes: &str) -> Budget {
        Budget::always(nodes.parse().unwrap())
    }

    fn nightly(nodes: &str) -> Budget {
        let window = Window {
            schedule: "0 22 * * *".parse().unwrap(),
            duration: SignedDuration::from_hours(8),
        };
        Budget {
            window: Some(window),
            ..budget(nodes)
        }
    }

    #[test]
    fn a_share_is_rounded_up() {
        let now = at("2026-01-01T00:00:00Z");
        assert_eq!(budget("10%").allowed(now, 19), 2);
        assert_eq!(budget("10%").allowed(now, 20), 2);
        assert_eq!(budget("10%").allowed(now, 1), 1);
        assert_eq!(budget("10%").allowed(now, 0), 0);
        assert_eq!(budget("0%").allowed(now, 50), 0);
        assert_eq!(budget("100%").allowed(now, 50), 50);
        assert_eq!(budget("5").allowed(now, 1), 5);
        assert_eq!(budget("99999999999").allowed(now, 1), UNBOUNDED);
    }

    #[test]
    fn a_window_is_open_from_the_hit_until_just_before_its_end() {
        let budget = nightly("0");
        for (now, active) in [
            ("2026-01-01T21:59:59Z", false),
            ("2026-01-01T22:00:00Z", true),
            ("2026-01-02T05:59:59Z", true),
            ("2026-01-02T06:00:00Z", false),
            ("2026-01-02T12:00:00Z", false),
        ] {
            assert_eq!(budget.is_active(at(now)), active, "{now}");
            assert_eq!(budget.allowed(at(now), 10), if active { 0 } else { UNBOUNDED }, "{now}");
        }
    }

    #[test]
    fn the_least_of_the_applying_budgets_counts() {
        let now = at("2026-01-01T12:00:00Z");
        let only = |nodes: &str, reasons: &[DisruptionReason]| Budget {
            reasons: Some(reasons.iter().copied().collect()),
            ..budget(nodes)
        };
        let budgets = [
            budget("5"),
            only("2", &[DisruptionReason::Drifted]),
            only("0", &[]),
            nightly("0"),
        ];
        assert_eq!(allowed(&budgets, DisruptionReason::Empty, now, 10), 5);
        assert_eq!(allowed(&budgets, DisruptionReason::Drifted, now, 10), 2);
        assert_eq!(
            allowed(&budgets, DisruptionReason::Empty, at("2026-01-01T23:00:00Z"), 10),
            0
        );
        assert_eq!(allowed(&[], DisruptionReason::Empty, now, 10), UNBOUNDED);
    }

    #[test]
    fn shares_are_digits_with_or_without_a_percent_sign() {
        for text in ["", "%", "-1", "+1", "1.5", "10%%", "ten"] {
            assert_eq!(text.parse::<NodeShare>(), Err(InvalidShare(text.to_owned())));
        }
        for text in ["0", "7", "100%"] {
            assert_eq!(text.parse::<NodeShare>().unwrap().to_string(), text);
        }
    }
}
