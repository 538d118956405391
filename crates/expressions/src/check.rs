//! The type of an expression, told before it is evaluated.
//!
//! The rules are the language's, with one licence: whole numbers and fractions may be compared, as they can be when it
//! comes to evaluating. They are not added without a conversion.

use std::fmt;

use crate::{
    parser::{Expr, Lookup, LoopKind, Operator},
    value::{Key, Value},
};

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Known only when there is a value.
    Any,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Any => write!(f, "dyn"),
            Type::Null => write!(f, "null"),
            Type::Bool => write!(f, "bool"),
            Type::Int => write!(f, "int"),
            Type::Uint => write!(f, "uint"),
            Type::Double => write!(f, "double"),
            Type::Text => write!(f, "string"),
            Type::List(item) => write!(f, "list({item})"),
            Type::Map(key, value) => write!(f, "map({key}, {value})"),
        }
    }
}

impl Type {
    fn is(&self, wanted: &Type) -> bool {
        *self == Type::Any || self == wanted
    }

    fn is_number(&self) -> bool {
        matches!(self, Type::Any | Type::Int | Type::Uint | Type::Double)
    }

    /// The type that stands for both, if values of them can meet where the language wants one type.
    fn joined(&self, other: &Type) -> Option<Type> {
        match (self, other) {
            (one, other) if one == other => Some(one.clone()),
            (Type::Any, _) | (_, Type::Any) => Some(Type::Any),
            (Type::List(one), Type::List(other)) => Some(Type::List(Box::new(one.joined(other)?))),
            (Type::Map(key, value), Type::Map(other_key, other_value)) => Some(Type::Map(
                Box::new(key.joined(other_key)?),
                Box::new(value.joined(other_value)?),
            )),
            _ => None,
        }
    }

    fn can_equal(&self, other: &Type) -> bool {
        self.joined(other).is_some() || (self.is_number() && other.is_number())
    }
}

type Checked = Result<Type, String>;

pub(crate) fn type_of(expr: &Expr, variables: &[(&str, Type)]) -> Checked {
    let scope = Scope {
        names: variables,
        outer: None,
    };
    scope.type_of(expr)
}

/// Names and their types, the innermost first.
struct Scope<'a> {
    names: &'a [(&'a str, Type)],
    outer: Option<&'a Scope<'a>>,
}

impl Scope<'_> {
    fn get(&self, name: &str) -> Option<&Type> {
        match self.names.iter().find(|(known, _)| *known == name) {
            Some((_, known)) => Some(known),
            None => self.outer?.get(name),
        }
    }

    fn known(&self) -> String {
        let own: Vec<&str> = self.names.iter().map(|(name, _)| *name).collect();
        match self.outer.map(Scope::known) {
            Some(outer) => format!("{}, {outer}", own.join(", ")),
            None => own.join(", "),
        }
    }

    fn type_of(&self, expr: &Expr) -> Checked {
        match expr {
            Expr::Literal(value) => Ok(of_value(value)),
            Expr::Name(name) => {
                let found = self.get(name).cloned();
                found.ok_or_else(|| format!("{name:?} is not known; known are {}", self.known()))
            }
            Expr::Select { of, field, how } => found_in(&self.type_of(of)?, &Type::Text, field, *how),
            Expr::Index { of, at, how } => {
                let (of, at) = (self.type_of(of)?, self.type_of(at)?);
                found_in(&of, &at, &at.to_string(), *how)
            }
            Expr::List(parts) => Ok(Type::List(Box::new(self.common(parts.iter())?))),
            Expr::Map(entries) => {
                let keys = self.common(entries.iter().map(|(key, _)| key))?;
                let values = self.common(entries.iter().map(|(_, value)| value))?;
                Ok(Type::Map(Box::new(keys), Box::new(values)))
            }
            Expr::Not(inner) => self.wanted(inner, &Type::Bool),
            Expr::Negative(inner) => match self.type_of(inner)? {
                found @ (Type::Any | Type::Int | Type::Double) => Ok(found),
                other => Err(format!("{other} has no negative")),
            },
            Expr::Binary(operator, sides) => binary(*operator, &self.type_of(&sides.0)?, &self.type_of(&sides.1)?),
            Expr::Any(parts) | Expr::All(parts) => {
                for part in parts {
                    self.wanted(part, &Type::Bool)?;
                }
                Ok(Type::Bool)
            }
            Expr::Choice(parts) => {
                let (condition, yes, no) = &**parts;
                self.wanted(condition, &Type::Bool)?;
                let (yes, no) = (self.type_of(yes)?, self.type_of(no)?);
                yes.joined(&no)
                    .ok_or_else(|| format!("a choice is between values of one type, not between {yes} and {no}"))
            }
            Expr::Call { function, arguments } => {
                let types: Result<Vec<Type>, String> = arguments.iter().map(|part| self.type_of(part)).collect();
                let types = types?;
                called(function, &types).ok_or_else(|| {
                    let types: Vec<String> = types.iter().map(ToString::to_string).collect();
                    let name = function.trim_start_matches('.');
                    format!("function {name} does not take {}", types.join(" and "))
                })
            }
            Expr::Bind { name, value, body } => {
                let names = [(name.as_str(), self.type_of(value)?)];
                let inner = Scope {
                    names: &names,
                    outer: Some(self),
                };
                inner.type_of(body)
            }
            Expr::Loop { over, name, kind, body } => self.round(&self.type_of(over)?, name, kind, body),
        }
    }

    fn wanted(&self, expr: &Expr, wanted: &Type) -> Checked {
        let found = self.type_of(expr)?;
        match found.is(wanted) {
            true => Ok(wanted.clone()),
            false => Err(format!("{wanted} is wanted, not {found}")),
        }
    }

    /// The type of all parts, or that it depends on which.
    fn common<'e>(&self, parts: impl Iterator<Item = &'e Expr>) -> Checked {
        let mut common: Option<Type> = None;
        for part in parts {
            let found = self.type_of(part)?;
            common = Some(match common {
                None => found,
                Some(before) => before.joined(&found).unwrap_or(Type::Any),
            });
        }
        Ok(common.unwrap_or(Type::Any))
    }

    fn round(&self, over: &Type, name: &str, kind: &LoopKind, body: &Expr) -> Checked {
        let item = match over {
            Type::List(item) => (**item).clone(),
            Type::Map(key, _) => (**key).clone(),
            Type::Any => Type::Any,
            other => return Err(format!("a list or a map is gone through, not {other}")),
        };
        let names = [(name, item.clone())];
        let inner = Scope {
            names: &names,
            outer: Some(self),
        };
        match kind {
            LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne => inner.wanted(body, &Type::Bool),
            LoopKind::Filter => {
                inner.wanted(body, &Type::Bool)?;
                Ok(Type::List(Box::new(item)))
            }
            LoopKind::Map(condition) => {
                if let Some(condition) = condition {
                    inner.wanted(condition, &Type::Bool)?;
                }
                Ok(Type::List(Box::new(inner.type_of(body)?)))
            }
        }
    }
}

fn of_value(value: &Value) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::Bool(_) => Type::Bool,
        Value::Int(_) => Type::Int,
        Value::Uint(_) => Type::Uint,
        Value::Double(_) => Type::Double,
        Value::Text(_) => Type::Text,
        Value::List(items) => {
            let types = items.iter().map(of_value);
            let common = types.reduce(|one, other| one.joined(&other).unwrap_or(Type::Any));
            Type::List(Box::new(common.unwrap_or(Type::Any)))
        }
        Value::Map(map) | Value::Domains(map) => {
            let is_text = map.keys().all(|key| matches!(key, Key::Text(_)));
            let keys = if is_text { Type::Text } else { Type::Any };
            Type::Map(Box::new(keys), Box::new(Type::Any))
        }
        Value::Quantity(_) | Value::Version(_) | Value::Optional(_) => Type::Any,
    }
}

fn found_in(of: &Type, at: &Type, shown: &str, how: Lookup) -> Checked {
    let found = match of {
        Type::Any => Type::Any,
        Type::List(item) if at.is(&Type::Int) || at.is(&Type::Uint) => (**item).clone(),
        Type::Map(key, value) if key.can_equal(at) => (**value).clone(),
        other => return Err(format!("{other} has no {shown}")),
    };
    match how {
        Lookup::Value => Ok(found),
        Lookup::Presence => Ok(Type::Bool),
        Lookup::Optional => Ok(Type::Any),
    }
}

fn binary(operator: Operator, left: &Type, right: &Type) -> Checked {
    let fits = match operator {
        Operator::Equal | Operator::Unequal => left.can_equal(right).then_some(Type::Bool),
        Operator::Less | Operator::AtMost | Operator::Greater | Operator::AtLeast => {
            let text = left.is(&Type::Text) && right.is(&Type::Text);
            let truth = left.is(&Type::Bool) && right.is(&Type::Bool);
            (text || truth || (left.is_number() && right.is_number())).then_some(Type::Bool)
        }
        Operator::In => match right {
            Type::List(item) => item.can_equal(left).then_some(Type::Bool),
            Type::Map(key, _) => key.can_equal(left).then_some(Type::Bool),
            Type::Any => Some(Type::Bool),
            _ => None,
        },
        Operator::Plus | Operator::Minus | Operator::Times | Operator::Divide | Operator::Remainder => {
            left.joined(right).filter(|both| match both {
                Type::Any | Type::Int | Type::Uint => true,
                Type::Double => operator != Operator::Remainder,
                Type::Text | Type::List(_) => operator == Operator::Plus,
                Type::Null | Type::Bool | Type::Map(..) => false,
            })
        }
    };
    fits.ok_or_else(|| format!("no operator takes {left} on one side and {right} on the other here"))
}

/// `None` for types that the function does not take. Only the functions of [`crate::Functions::Arithmetic`] are typed; the
/// others yield whatever they do.
fn called(function: &str, types: &[Type]) -> Option<Type> {
    let convertible = |type_: &Type| type_.is_number() || *type_ == Type::Text;
    match (function, types) {
        ("size" | ".size", [Type::Any | Type::Text | Type::List(_) | Type::Map(..)]) => Some(Type::Int),
        ("int", [from]) if convertible(from) => Some(Type::Int),
        ("uint", [from]) if convertible(from) => Some(Type::Uint),
        ("double", [from]) if convertible(from) => Some(Type::Double),
        ("string", [from]) if convertible(from) || *from == Type::Bool => Some(Type::Text),
        ("bool", [Type::Any | Type::Bool | Type::Text]) => Some(Type::Bool),
        (".contains" | ".startsWith" | ".endsWith" | ".matches" | "matches", [text, part])
            if text.is(&Type::Text) && part.is(&Type::Text) =>
        {
            Some(Type::Bool)
        }
        ("max" | "min", [Type::Int, Type::Int]) => Some(Type::Int),
        ("max" | "min", [Type::Int | Type::Double, Type::Int | Type::Double]) => Some(Type::Double),
        ("max" | "min", [one, other]) if *one == Type::Any || *other == Type::Any => Some(Type::Any),
        (
            "size" | ".size" | "int" | "uint" | "double" | "string" | "bool" | ".contains" | ".startsWith"
            | ".endsWith" | ".matches" | "matches" | "max" | "min",
            _,
        ) => None,
        _ => Some(Type::Any),
    }
}

#[cfg(test)]
mod tests;
