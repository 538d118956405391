//! Numbers that users leave to an expression over the instance type.

use std::sync::Arc;

use clock::Clock;
use expressions::{Expression, Functions, Type, Value};
use jiff::SignedDuration;

use crate::{cache::Cache, ports::InstanceTypeInfo};

/// How long an expression that nobody evaluates is kept. Classes are evaluated far more often, so that only those of
/// classes that are gone are forgotten.
const KEPT: SignedDuration = SignedDuration::from_hours(12);

const VCPUS: &str = "vcpus";
const MEMORY_MIB: &str = "memory_mib";
const DEFAULT_ENIS: &str = "default_enis";
const IPS_PER_ENI: &str = "ips_per_eni";
const MAX_PODS: &str = "max_pods";
const INSTANCE_TYPE: &str = "instance_type";

const TYPES: [(&str, Type); 6] = [
    (VCPUS, Type::Int),
    (MEMORY_MIB, Type::Int),
    (DEFAULT_ENIS, Type::Int),
    (IPS_PER_ENI, Type::Int),
    (MAX_PODS, Type::Int),
    (INSTANCE_TYPE, Type::Text),
];

/// What expressions are told about an instance type.
#[derive(Clone, Debug)]
pub struct Variables([(&'static str, Value); 6]);

/// EC2 does not say how many interfaces the type takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("EC2 describes no default network card")]
pub struct NoDefaultCard;

impl Variables {
    /// `max_pods` is the default for expressions that bound the pods, and the outcome for all others.
    pub fn of(info: &InstanceTypeInfo, max_pods: i64) -> Result<Self, NoDefaultCard> {
        let card = info.network.card(info.network.default_card).ok_or(NoDefaultCard)?;
        Ok(Self([
            (VCPUS, Value::Int(info.vcpus)),
            (MEMORY_MIB, Value::Int(info.memory_mib)),
            (DEFAULT_ENIS, Value::Int(card.max_interfaces)),
            (IPS_PER_ENI, Value::Int(info.network.ipv4_per_interface)),
            (MAX_PODS, Value::Int(max_pods)),
            (INSTANCE_TYPE, Value::text(&info.name)),
        ]))
    }
}

/// Why a text is no expression that yields a number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is neither a number nor an expression that yields one: {0}")]
pub struct NotAFormula(String);

/// Why an expression has no value on one instance type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoValue {
    #[error("it fails, as by a division by zero, a number that is too large, or an entry that is not there")]
    Fails,
    #[error("it yields a number that is not finite")]
    NotFinite,
}

/// An expression that yields a number.
#[derive(Debug)]
pub struct Formula(Expression);

impl Formula {
    pub fn read(text: &str) -> Result<Self, NotAFormula> {
        let expression = Expression::read(text, Functions::Arithmetic).map_err(NotAFormula)?;
        match expression.type_over(&TYPES).map_err(NotAFormula)? {
            Type::Int | Type::Double => Ok(Self(expression)),
            other => Err(NotAFormula(format!("it yields {other}"))),
        }
    }

    /// A whole number; what is behind the point is cut off.
    pub fn value(&self, variables: &Variables) -> Result<i64, NoValue> {
        match self.0.evaluate(&variables.0) {
            Some(Value::Int(number)) => Ok(number),
            Some(Value::Double(number)) if !number.is_finite() => Err(NoValue::NotFinite),
            Some(Value::Double(number)) if number.abs() < i64::MAX as f64 => Ok(number as i64),
            _ => Err(NoValue::Fails),
        }
    }
}

/// The expressions of all classes, read once each.
pub struct Formulas {
    allowed: bool,
    read: Cache<String, Arc<Formula>>,
}

impl Formulas {
    /// Whether expressions are evaluated at all is decided by the gate `NodeClassCEL`.
    pub fn new(clock: Arc<dyn Clock>, allowed: bool) -> Self {
        Self {
            allowed,
            read: Cache::new(clock, KEPT),
        }
    }

    pub fn are_allowed(&self) -> bool {
        self.allowed
    }

    pub fn of(&self, text: &str) -> Result<Arc<Formula>, NotAFormula> {
        let key = text.to_owned();
        let formula = match self.read.get(&key) {
            Some(known) => known,
            None => Arc::new(Formula::read(text)?),
        };
        self.read.put(key, formula.clone());
        Ok(formula)
    }
}

#[cfg(test)]
mod tests;
