//! One label and the values it may still take while a node is being planned.
//!
//! A pool narrows a label, a pod narrows it further, an instance type further still; what is left is their
//! intersection. Several labels at once are in [`crate::requirements`].

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    ids::{LabelKey, LabelValue},
    vocabulary::normalized_key,
};

/// How a requirement is written in a NodePool, a NodeClaim or a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Gt,
    Lt,
    Gte,
    Lte,
}

impl Operator {
    pub const ALL: [Operator; 8] = [
        Operator::In,
        Operator::NotIn,
        Operator::Exists,
        Operator::DoesNotExist,
        Operator::Gt,
        Operator::Lt,
        Operator::Gte,
        Operator::Lte,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Operator::In => "In",
            Operator::NotIn => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
            Operator::Gt => "Gt",
            Operator::Lt => "Lt",
            Operator::Gte => "Gte",
            Operator::Lte => "Lte",
        }
    }

    /// A node without the label satisfies it.
    pub fn accepts_absence(self) -> bool {
        matches!(self, Operator::NotIn | Operator::DoesNotExist)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an operator: use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte")]
pub struct UnknownOperator(pub String);

impl FromStr for Operator {
    type Err = UnknownOperator;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Operator::ALL
            .into_iter()
            .find(|op| op.as_str() == text)
            .ok_or_else(|| UnknownOperator(text.to_owned()))
    }
}

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

/// One label, the values it may take, and how many different ones have to remain on offer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    pub key: LabelKey,
    pub values: Values,
    pub min_values: Option<u32>,
}

/// Why operator and values do not make a requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequirement {
    #[error("{operator} on {key} needs exactly one value, not {count}")]
    NotOneBound {
        key: LabelKey,
        operator: Operator,
        count: usize,
    },
    #[error("{operator} on {key} needs a whole number, not {value:?}")]
    NotANumber {
        key: LabelKey,
        operator: Operator,
        value: LabelValue,
    },
}

impl Requirement {
    /// Reads operator and values as a NodePool or a node selector writes them. Old keys become the new ones.
    ///
    /// Values beside `Exists` and `DoesNotExist` are ignored.
    pub fn new(
        key: &str,
        operator: Operator,
        values: impl IntoIterator<Item = LabelValue>,
    ) -> Result<Self, InvalidRequirement> {
        let key = LabelKey::from(normalized_key(key));
        let values = match operator {
            Operator::In => Values::Only(values.into_iter().collect()),
            Operator::NotIn => Values::AllBut {
                except: values.into_iter().collect(),
                range: IntRange::ALL,
            },
            Operator::Exists => Values::ANY,
            Operator::DoesNotExist => Values::NONE,
            Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => {
                let bound = bound(&key, operator, values.into_iter().collect())?;
                // Beyond the last number there is nothing.
                let range = match operator {
                    Operator::Gt => bound.checked_add(1).map(|min| IntRange {
                        min: Some(min),
                        max: None,
                    }),
                    Operator::Gte => Some(IntRange {
                        min: Some(bound),
                        max: None,
                    }),
                    Operator::Lt => bound.checked_sub(1).map(|max| IntRange {
                        min: None,
                        max: Some(max),
                    }),
                    _ => Some(IntRange {
                        min: None,
                        max: Some(bound),
                    }),
                };
                range.map_or(Values::NONE, Values::in_range)
            }
        };
        Ok(Self {
            key,
            values,
            min_values: None,
        })
    }

    /// These values for this key, which is taken as it is written.
    pub fn of(key: impl Into<LabelKey>, values: Values) -> Self {
        Self {
            key: key.into(),
            values,
            min_values: None,
        }
    }

    /// `key In [values]`. Old keys become the new ones.
    pub fn one_of<V: Into<LabelValue>>(key: &str, values: impl IntoIterator<Item = V>) -> Self {
        Self::of(
            normalized_key(key),
            Values::Only(values.into_iter().map(Into::into).collect()),
        )
    }

    /// `key NotIn [values]`. Old keys become the new ones.
    pub fn none_of<V: Into<LabelValue>>(key: &str, values: impl IntoIterator<Item = V>) -> Self {
        let except = values.into_iter().map(Into::into).collect();
        Self::of(
            normalized_key(key),
            Values::AllBut {
                except,
                range: IntRange::ALL,
            },
        )
    }

    pub fn exists(key: &str) -> Self {
        Self::of(normalized_key(key), Values::ANY)
    }

    pub fn absent(key: &str) -> Self {
        Self::of(normalized_key(key), Values::NONE)
    }

    #[must_use]
    pub fn with_min_values(mut self, min_values: Option<u32>) -> Self {
        self.min_values = min_values;
        self
    }

    pub fn has(&self, value: &str) -> bool {
        self.values.has(value)
    }

    pub fn len(&self) -> i64 {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub fn operator(&self) -> Operator {
        self.values.operator()
    }

    pub fn any(&self) -> Option<LabelValue> {
        self.values.any()
    }

    /// What both requirements on one key admit; the larger demand for variety counts.
    #[must_use]
    pub fn intersect(&self, other: &Requirement) -> Requirement {
        debug_assert_eq!(self.key, other.key, "only requirements on one key can be intersected");
        Requirement {
            key: self.key.clone(),
            values: self.values.intersect(&other.values),
            min_values: self.min_values.max(other.min_values),
        }
    }

    pub fn has_intersection(&self, other: &Requirement) -> bool {
        self.values.overlaps(&other.values)
    }
}

/// A requirement as it is written in a NodePool, a NodeClaim or a node selector term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectorRequirement {
    pub key: LabelKey,
    pub operator: Operator,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<LabelValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_values: Option<u32>,
}

impl TryFrom<&SelectorRequirement> for Requirement {
    type Error = InvalidRequirement;

    fn try_from(written: &SelectorRequirement) -> Result<Self, Self::Error> {
        let read = Requirement::new(written.key.as_str(), written.operator, written.values.iter().cloned())?;
        // A bound that nothing can satisfy reads as absence, of which there are no several values to keep on offer.
        let vacuous = read.is_empty() && matches!(written.operator, Operator::Gt | Operator::Lt);
        Ok(read.with_min_values(written.min_values.filter(|_| !vacuous)))
    }
}

impl Requirement {
    /// How to write this requirement: one entry, or several where bounds meet each other or exclusions.
    ///
    /// Upstream loses the exclusions of a bounded requirement; here they get an entry of their own.
    pub fn to_selector(&self) -> Vec<SelectorRequirement> {
        let entry = |operator, values: Vec<LabelValue>| SelectorRequirement {
            key: self.key.clone(),
            operator,
            values,
            min_values: self.min_values,
        };
        match &self.values {
            Values::Only(set) => vec![entry(self.operator(), set.iter().cloned().collect())],
            Values::AllBut { except, range } => {
                let number = |bound: i64| vec![LabelValue::from(bound.to_string())];
                let lower = range.min.map(|min| entry(Operator::Gte, number(min)));
                let upper = range.max.map(|max| entry(Operator::Lte, number(max)));
                let rest = (!range.is_bounded() || !except.is_empty())
                    .then(|| entry(self.operator(), except.iter().cloned().collect()));
                lower.into_iter().chain(upper).chain(rest).collect()
            }
        }
    }
}

fn bound(key: &LabelKey, operator: Operator, values: Vec<LabelValue>) -> Result<i64, InvalidRequirement> {
    let [value] = <[LabelValue; 1]>::try_from(values).map_err(|values| InvalidRequirement::NotOneBound {
        key: key.clone(),
        operator,
        count: values.len(),
    })?;
    value.as_str().parse().map_err(|_| InvalidRequirement::NotANumber {
        key: key.clone(),
        operator,
        value,
    })
}

/// How many values a message lists before it counts the rest.
const SHOWN_VALUES: usize = 5;

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.operator())?;
        let (Values::Only(set) | Values::AllBut { except: set, .. }) = &self.values;
        if !set.is_empty() {
            let shown: Vec<&str> = set.iter().take(SHOWN_VALUES).map(LabelValue::as_str).collect();
            write!(f, " [{}", shown.join(" "))?;
            match set.len().saturating_sub(SHOWN_VALUES) {
                0 => f.write_str("]")?,
                rest => write!(f, " and {rest} others]")?,
            }
        }
        if let Values::AllBut { range, .. } = &self.values {
            if let Some(min) = range.min {
                write!(f, " >={min}")?;
            }
            if let Some(max) = range.max {
                write!(f, " <={max}")?;
            }
        }
        if let Some(least) = self.min_values {
            write!(f, " minValues {least}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
