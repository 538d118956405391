//! The values that a label may take: a small algebra with one operation, the intersection.

use std::collections::BTreeSet;

use super::Operator;
use crate::ids::LabelValue;

/// Inclusive bounds on values that are whole numbers. Once there is a bound, other values are outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntRange {
    pub min: Option<i64>,
    pub max: Option<i64>,
}

impl IntRange {
    pub const ALL: IntRange = IntRange { min: None, max: None };

    pub fn is_bounded(self) -> bool {
        self.min.is_some() || self.max.is_some()
    }

    pub fn admits(self, value: &str) -> bool {
        if !self.is_bounded() {
            return true;
        }
        value.parse().is_ok_and(|number: i64| {
            self.min.is_none_or(|min| min <= number) && self.max.is_none_or(|max| number <= max)
        })
    }

    /// What both ranges admit; `None` when that is nothing.
    pub fn intersect(self, other: IntRange) -> Option<IntRange> {
        let min = self.min.max(other.min);
        let max = match (self.max, other.max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let crossed = matches!((min, max), (Some(min), Some(max)) if min > max);
        (!crossed).then_some(IntRange { min, max })
    }
}

/// The values that a label may still take.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Values {
    /// One of these. The empty set means that the label has to be absent.
    Only(BTreeSet<LabelValue>),
    /// Anything outside `except` and inside `range`.
    AllBut {
        except: BTreeSet<LabelValue>,
        range: IntRange,
    },
}

impl Values {
    /// The label has to exist, with whatever value.
    pub const ANY: Values = Values::AllBut {
        except: BTreeSet::new(),
        range: IntRange::ALL,
    };
    /// The label has to be absent.
    pub const NONE: Values = Values::Only(BTreeSet::new());

    pub fn in_range(range: IntRange) -> Values {
        Values::AllBut {
            except: BTreeSet::new(),
            range,
        }
    }

    pub fn has(&self, value: &str) -> bool {
        match self {
            Values::Only(set) => set.contains(value),
            Values::AllBut { except, range } => !except.contains(value) && range.admits(value),
        }
    }

    /// What both sides admit. Total: a contradiction is the empty set, not an error.
    #[must_use]
    pub fn intersect(&self, other: &Values) -> Values {
        use Values::{AllBut, Only};
        match (self, other) {
            (Only(set), rest) | (rest, Only(set)) => {
                Only(set.iter().filter(|value| rest.has(value.as_str())).cloned().collect())
            }
            (AllBut { except: a, range: r }, AllBut { except: b, range: s }) => match r.intersect(*s) {
                // Exclusions outside the bounds say nothing any more.
                Some(range) => AllBut {
                    except: a
                        .union(b)
                        .filter(|value| range.admits(value.as_str()))
                        .cloned()
                        .collect(),
                    range,
                },
                None => Values::NONE,
            },
        }
    }

    /// Whether anything is admitted by both sides, without building the intersection. Two open sets always overlap
    /// unless their bounds cross: exclusions are not counted against a range.
    pub fn overlaps(&self, other: &Values) -> bool {
        use Values::{AllBut, Only};
        match (self, other) {
            (Only(a), Only(b)) => {
                let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
                few.iter().any(|value| many.contains(value))
            }
            (Only(set), rest) | (rest, Only(set)) => set.iter().any(|value| rest.has(value.as_str())),
            (AllBut { range: r, .. }, AllBut { range: s, .. }) => r.intersect(*s).is_some(),
        }
    }

    /// How many values are admitted; open sets count as all of `i64` less their exclusions.
    pub fn len(&self) -> i64 {
        let listed = |set: &BTreeSet<LabelValue>| i64::try_from(set.len()).unwrap_or(i64::MAX);
        match self {
            Values::Only(set) => listed(set),
            Values::AllBut { except, .. } => i64::MAX - listed(except),
        }
    }

    /// No value is admitted: the label has to be absent.
    pub fn is_empty(&self) -> bool {
        matches!(self, Values::Only(set) if set.is_empty())
    }

    /// The operator that would be written for these values. Bounds do not show: they count as `Exists`, or `NotIn`
    /// beside exclusions.
    pub fn operator(&self) -> Operator {
        match self {
            Values::Only(set) if set.is_empty() => Operator::DoesNotExist,
            Values::Only(_) => Operator::In,
            Values::AllBut { except, .. } if except.is_empty() => Operator::Exists,
            Values::AllBut { .. } => Operator::NotIn,
        }
    }

    /// The values that are listed one by one, if they are.
    pub fn listed(&self) -> Option<&BTreeSet<LabelValue>> {
        match self {
            Values::Only(set) => Some(set),
            Values::AllBut { .. } => None,
        }
    }

    /// The value, when only one is left.
    pub fn single(&self) -> Option<&LabelValue> {
        self.listed().filter(|set| set.len() == 1).and_then(BTreeSet::first)
    }

    /// Some admitted value: the smallest of a list, otherwise the smallest admitted number from the lower bound (or
    /// zero) on. Always the same one for the same values.
    pub fn any(&self) -> Option<LabelValue> {
        match self {
            Values::Only(set) => set.first().cloned(),
            Values::AllBut { except, range } => {
                let first = range.min.unwrap_or_else(|| range.max.map_or(0, |max| max.min(0)));
                let last = range.max.unwrap_or(i64::MAX);
                let mut numbers = (first..=last).map(|number| number.to_string());
                numbers
                    .find(|number| !except.contains(number.as_str()))
                    .map(LabelValue::from)
            }
        }
    }
}
