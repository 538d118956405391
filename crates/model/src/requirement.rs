//! One label and the values it may still take while a node is being planned.
//!
//! A pool narrows a label, a pod narrows it further, an instance type further still; what is left is their
//! intersection: the algebra is in [`Values`]. Several labels at once are in [`crate::requirements`].

mod operator;
mod values;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    ids::{LabelKey, LabelValue},
    vocabulary::normalized_key,
};

pub use operator::{Operator, UnknownOperator};
pub use values::{IntRange, Values};

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
