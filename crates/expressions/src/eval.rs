//! What an expression yields.

use std::{cell::Cell, cmp::Ordering, collections::BTreeMap, sync::Arc};

use crate::{
    functions,
    parser::{Expr, Lookup, LoopKind, Operator},
    value::Value,
};

/// What one evaluation may cost: the figure of the API server, although its units differ.
const MOST_STEPS: usize = 1_000_000;

/// `None` when the expression fails: something is missing, of another type, out of range, or it takes too long.
pub(crate) fn evaluate(expr: &Expr, variables: &[(&str, Value)]) -> Option<Value> {
    let evaluation = Evaluation {
        steps: Cell::new(MOST_STEPS),
    };
    let scope = Scope {
        names: variables,
        outer: None,
    };
    evaluation.value(expr, &scope)
}

/// Names and what they stand for, the innermost first.
struct Scope<'a> {
    names: &'a [(&'a str, Value)],
    outer: Option<&'a Scope<'a>>,
}

impl Scope<'_> {
    fn get(&self, name: &str) -> Option<Value> {
        match self.names.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => Some(value.clone()),
            None => self.outer?.get(name),
        }
    }
}

pub(crate) struct Evaluation {
    steps: Cell<usize>,
}

impl Evaluation {
    /// Takes the price of some work, or fails where it cannot be afforded.
    pub fn pay(&self, price: usize) -> Option<()> {
        self.steps.set(self.steps.get().checked_sub(price)?);
        Some(())
    }

    fn value(&self, expr: &Expr, scope: &Scope<'_>) -> Option<Value> {
        self.pay(1)?;
        match expr {
            Expr::Literal(value) => Some(value.clone()),
            Expr::Name(name) => scope.get(name),
            Expr::Select { of, field, how } => {
                let of = self.value(of, scope)?;
                lookup(&of, &Value::text(field), *how)
            }
            Expr::Index { of, at, how } => {
                let of = self.value(of, scope)?;
                let at = self.value(at, scope)?;
                lookup(&of, &at, *how)
            }
            Expr::List(parts) => Some(Value::List(self.values(parts, scope)?.into())),
            Expr::Map(entries) => {
                let mut map = BTreeMap::new();
                for (key, value) in entries {
                    map.insert(self.value(key, scope)?.key()?, self.value(value, scope)?);
                }
                Some(Value::Map(Arc::new(map)))
            }
            Expr::Not(inner) => match self.value(inner, scope)? {
                Value::Bool(value) => Some(Value::Bool(!value)),
                _ => None,
            },
            Expr::Negative(inner) => match self.value(inner, scope)? {
                Value::Int(number) => number.checked_neg().map(Value::Int),
                Value::Double(number) => Some(Value::Double(-number)),
                _ => None,
            },
            Expr::Binary(operator, sides) => {
                let (left, right) = (self.value(&sides.0, scope)?, self.value(&sides.1, scope)?);
                self.binary(*operator, &left, &right)
            }
            Expr::Any(parts) => self.decisive(true, parts, scope),
            Expr::All(parts) => self.decisive(false, parts, scope),
            Expr::Choice(parts) => {
                let (condition, yes, no) = &**parts;
                self.value(if self.truth(condition, scope)? { yes } else { no }, scope)
            }
            Expr::Call { function, arguments } => functions::call(self, function, &self.values(arguments, scope)?),
            Expr::Bind { name, value, body } => {
                let value = self.value(value, scope)?;
                self.within(scope, name, value, body)
            }
            Expr::Loop { over, name, kind, body } => {
                let items = self.value(over, scope)?.items()?;
                self.round(&items, name, kind, body, scope)
            }
        }
    }

    fn values(&self, parts: &[Expr], scope: &Scope<'_>) -> Option<Vec<Value>> {
        parts.iter().map(|part| self.value(part, scope)).collect()
    }

    fn truth(&self, expr: &Expr, scope: &Scope<'_>) -> Option<bool> {
        match self.value(expr, scope)? {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    fn within(&self, scope: &Scope<'_>, name: &str, value: Value, body: &Expr) -> Option<Value> {
        let inner = Scope {
            names: &[(name, value)],
            outer: Some(scope),
        };
        self.value(body, &inner)
    }

    /// One part with the decisive value settles it, whether or not others fail.
    fn decisive(&self, decisive: bool, parts: &[Expr], scope: &Scope<'_>) -> Option<Value> {
        let mut failed = false;
        for part in parts {
            match self.truth(part, scope) {
                Some(value) if value == decisive => return Some(Value::Bool(decisive)),
                Some(_) => {}
                None => failed = true,
            }
        }
        (!failed).then_some(Value::Bool(!decisive))
    }

    fn round(&self, items: &[Value], name: &str, kind: &LoopKind, body: &Expr, scope: &Scope<'_>) -> Option<Value> {
        let ask = |expr: &Expr, item: &Value| self.within(scope, name, item.clone(), expr);
        let truth = |expr: &Expr, item: &Value| match ask(expr, item) {
            Some(Value::Bool(value)) => Some(value),
            _ => None,
        };
        match kind {
            LoopKind::All | LoopKind::Exists => {
                let decisive = matches!(kind, LoopKind::Exists);
                let mut failed = false;
                for item in items {
                    match truth(body, item) {
                        Some(value) if value == decisive => return Some(Value::Bool(decisive)),
                        Some(_) => {}
                        None => failed = true,
                    }
                }
                (!failed).then_some(Value::Bool(!decisive))
            }
            LoopKind::ExistsOne => {
                let mut count = 0;
                for item in items {
                    count += usize::from(truth(body, item)?);
                }
                Some(Value::Bool(count == 1))
            }
            LoopKind::Filter => {
                let mut kept = Vec::new();
                for item in items {
                    if truth(body, item)? {
                        kept.push(item.clone());
                    }
                }
                Some(Value::List(kept.into()))
            }
            LoopKind::Map(condition) => {
                let mut mapped = Vec::new();
                for item in items {
                    if condition
                        .as_ref()
                        .map_or(Some(true), |condition| truth(condition, item))?
                    {
                        mapped.push(ask(body, item)?);
                    }
                }
                Some(Value::List(mapped.into()))
            }
        }
    }

    fn binary(&self, operator: Operator, left: &Value, right: &Value) -> Option<Value> {
        let ordered = |wanted: fn(Ordering) -> bool| left.order(right).map(|order| Value::Bool(wanted(order)));
        match operator {
            Operator::Equal => Some(Value::Bool(left == right)),
            Operator::Unequal => Some(Value::Bool(left != right)),
            Operator::Less => ordered(Ordering::is_lt),
            Operator::AtMost => ordered(Ordering::is_le),
            Operator::Greater => ordered(Ordering::is_gt),
            Operator::AtLeast => ordered(Ordering::is_ge),
            Operator::In => right.contains(left).map(Value::Bool),
            Operator::Plus => match (left, right) {
                (Value::Text(a), Value::Text(b)) => {
                    self.pay(a.len() + b.len())?;
                    Some(Value::text(&format!("{a}{b}")))
                }
                (Value::List(a), Value::List(b)) => {
                    self.pay(a.len() + b.len())?;
                    Some(Value::List(a.iter().chain(b.iter()).cloned().collect()))
                }
                _ => arithmetic(operator, left, right),
            },
            _ => arithmetic(operator, left, right),
        }
    }
}

/// Numbers of one type; whole ones fail where the result is none.
fn arithmetic(operator: Operator, left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => Some(Value::Int(match operator {
            Operator::Plus => a.checked_add(*b)?,
            Operator::Minus => a.checked_sub(*b)?,
            Operator::Times => a.checked_mul(*b)?,
            Operator::Divide => a.checked_div(*b)?,
            Operator::Remainder => a.checked_rem(*b)?,
            _ => return None,
        })),
        (Value::Uint(a), Value::Uint(b)) => Some(Value::Uint(match operator {
            Operator::Plus => a.checked_add(*b)?,
            Operator::Minus => a.checked_sub(*b)?,
            Operator::Times => a.checked_mul(*b)?,
            Operator::Divide => a.checked_div(*b)?,
            Operator::Remainder => a.checked_rem(*b)?,
            _ => return None,
        })),
        (Value::Double(a), Value::Double(b)) => Some(Value::Double(match operator {
            Operator::Plus => a + b,
            Operator::Minus => a - b,
            Operator::Times => a * b,
            Operator::Divide => a / b,
            _ => return None,
        })),
        _ => None,
    }
}

fn lookup(of: &Value, at: &Value, how: Lookup) -> Option<Value> {
    // An optional value stays one whatever is looked up in it.
    if let Value::Optional(inner) = of {
        let found = inner.as_ref().and_then(|inner| inner.at(at)).map(Arc::new);
        return Some(match how {
            Lookup::Presence => Value::Bool(found.is_some()),
            Lookup::Value | Lookup::Optional => Value::Optional(found),
        });
    }
    match how {
        Lookup::Value => of.at(at),
        Lookup::Presence => of.contains(at).map(Value::Bool),
        Lookup::Optional => Some(Value::Optional(match of.contains(at) {
            Some(true) => of.at(at).map(Arc::new),
            _ => None,
        })),
    }
}
