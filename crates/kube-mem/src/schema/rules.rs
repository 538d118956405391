//! `x-kubernetes-validations`: rules in CEL, compiled once and run on every write.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::KubeCelExt;
use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::{Context, ExecutionError, FunctionContext, Program, Value as Cel};
use regex::Regex;
use serde_json::{Map, Value};

use super::SchemaError;
use super::cel_value::to_cel;
use super::field_error::{FieldError, Reason};
use super::pattern;
use super::structural::{Additional, Schema};
use super::validate::counterpart;
use crate::complaint;

/// Longer messages from a `messageExpression` are dropped in favour of the fixed one.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

/// What stands in most rules that forbid a change.
const IMMUTABLE: &str = "self == oldSelf";

/// How many patterns of rules are kept compiled. Rules write theirs out, so there are few.
const MAX_PATTERNS: usize = 256;

/// A compiled rule.
pub(super) struct Rule {
    program: Program,
    message_program: Option<Program>,
    /// What the failure says: the stated message, or the rule itself.
    message: String,
    has_message: bool,
    reason: Option<String>,
    /// `.spec.replicas`, below the place of the rule.
    field_path: String,
    uses_old_self: bool,
    optional_old_self: bool,
    /// Holds for everything that has not changed.
    holds_unchanged: bool,
}

impl Rule {
    pub(super) fn compile(rule: &Value, path: &str) -> Result<Rule, SchemaError> {
        let text = |name: &str| rule[name].as_str().unwrap_or_default().trim().to_owned();
        let compile = |name: &str| {
            let source = rule[name].as_str().unwrap_or_default();
            Program::compile(source).map_err(|cause| {
                let message = format!("Invalid value: {source:?}: compilation failed: {cause}");
                SchemaError::new(format!("{path}.{name}"), message)
            })
        };
        let program = compile("rule")?;
        let message_program = match text("messageExpression").as_str() {
            "" => None,
            _ => Some(compile("messageExpression")?),
        };
        let has_message = !text("message").is_empty();
        let uses_old_self = program.references().has_variable("oldSelf");
        Ok(Rule {
            uses_old_self,
            holds_unchanged: text("rule") == IMMUTABLE,
            program,
            message_program,
            message: if has_message { text("message") } else { text("rule") },
            has_message,
            reason: rule["reason"].as_str().map(str::to_owned),
            field_path: text("fieldPath"),
            optional_old_self: rule["optionalOldSelf"] == Value::Bool(true),
        })
    }

    /// Whether there can be something to say about a place with this counterpart. What has not changed is not held
    /// against anyone, unless the rule compares it with what it was.
    fn applies(&self, old: Old<'_>) -> bool {
        if !self.uses_old_self {
            return !old.unchanged;
        }
        let has_old = old.value.is_some_and(|old| !old.is_null());
        (has_old || self.optional_old_self) && !(old.unchanged && has_old && self.holds_unchanged)
    }
}

/// The old counterpart of a value.
#[derive(Clone, Copy)]
struct Old<'v> {
    value: Option<&'v Value>,
    /// The nearest place that has a counterpart holds what it held before.
    unchanged: bool,
}

impl<'v> Old<'v> {
    /// The counterpart of something below, if it has one.
    fn below(self, value: &Value, old: Option<&'v Value>) -> Self {
        match old {
            Some(old) => Old {
                value: Some(old),
                unchanged: old == value,
            },
            None => Old {
                value: None,
                unchanged: self.unchanged,
            },
        }
    }
}

/// Runs all rules of a schema on an object. A rule that fails on a place that has not changed is not reported, unless
/// it looks at the old value.
pub(super) fn broken_rules(schema: &Schema, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    thread_local! {
        /// Registering the functions takes longer than running a rule.
        static FUNCTIONS: Context<'static> = functions();
    }
    if !schema.has_rules {
        return Vec::new();
    }
    FUNCTIONS.with(|functions| {
        let mut run = Run {
            functions,
            errors: Vec::new(),
        };
        run.value(
            schema,
            new,
            Old {
                value: old,
                unchanged: old == Some(new),
            },
            "",
            true,
        );
        run.errors
    })
}

/// Everything that rules can call.
fn functions() -> Context<'static> {
    let mut functions = Context::default().with_all();
    functions.add_function("matches", matches);
    functions
}

/// Compiling a pattern takes a thousand times as long as running it.
fn matches(
    context: &FunctionContext<'_, '_>,
    This(text): This<Arc<String>>,
    sought: Arc<String>,
) -> Result<bool, ExecutionError> {
    thread_local! {
        static COMPILED: RefCell<HashMap<Arc<String>, Regex>> = RefCell::default();
    }
    COMPILED.with_borrow_mut(|compiled| {
        if let Some(regex) = compiled.get(&sought) {
            return Ok(regex.is_match(&text));
        }
        let regex =
            pattern::compile(&sought).map_err(|cause| context.error(format!("{sought:?} is no pattern: {cause}")))?;
        let found = regex.is_match(&text);
        if compiled.len() >= MAX_PATTERNS {
            compiled.clear();
        }
        compiled.insert(sought, regex);
        Ok(found)
    })
}

struct Run<'a> {
    functions: &'a Context<'static>,
    errors: Vec<FieldError>,
}

impl Run<'_> {
    fn value(&mut self, schema: &Schema, value: &Value, old: Old<'_>, path: &str, is_root: bool) {
        if !schema.has_rules || value.is_null() {
            return;
        }
        self.rules(schema, value, old, path, is_root);
        for branch in &schema.checks.all_of {
            self.value(branch, value, old, path, is_root);
        }
        match value {
            Value::Array(items) => {
                let Some(below) = &schema.items else { return };
                for (at, item) in items.iter().enumerate() {
                    let old = old.below(item, counterpart(schema, item, old.value));
                    self.value(below, item, old, &format!("{path}[{at}]"), below.embedded);
                }
            }
            Value::Object(fields) => self.fields(schema, fields, old, path),
            _ => {}
        }
    }

    fn fields(&mut self, schema: &Schema, fields: &Map<String, Value>, old: Old<'_>, path: &str) {
        for (key, value) in fields {
            let old = old.below(value, old.value.and_then(|old| old.get(key)));
            match (schema.properties.get(key), &schema.additional) {
                (Some(below), _) => {
                    let path = if path.is_empty() {
                        key.clone()
                    } else {
                        format!("{path}.{key}")
                    };
                    self.value(below, value, old, &path, below.embedded);
                }
                (None, Additional::Typed(below)) => {
                    self.value(below, value, old, &format!("{path}[{key}]"), below.embedded);
                }
                _ => {}
            }
        }
    }

    /// The rules of one place.
    fn rules(&mut self, schema: &Schema, value: &Value, old: Old<'_>, path: &str, is_root: bool) {
        let mut rules = schema.rules.iter().filter(|rule| rule.applies(old)).peekable();
        if rules.peek().is_none() {
            return;
        }
        let convert = |value: &Value| to_cel(schema, value, is_root, self.functions);
        let cel_old = old.value.filter(|old| !old.is_null()).map(convert);
        let mut scope = self.functions.new_inner_scope();
        scope.add_variable_from_value("self", convert(value));
        if let Some(old) = &cel_old {
            scope.add_variable_from_value("oldSelf", old.clone());
        }
        let mut optional = scope.new_inner_scope();
        let optional_old = cel_old.clone().map_or_else(OptionalValue::none, OptionalValue::of);
        optional.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(optional_old)));
        for rule in rules {
            let scope = if rule.optional_old_self { &optional } else { &scope };
            let place = if path.is_empty() { "<nil>" } else { path };
            match rule.program.execute(scope) {
                Ok(Cel::Bool(true)) => {}
                Ok(_) => self.errors.push(broken(rule, scope, schema, value, path)),
                Err(cause) => {
                    let shown = Value::from(schema.type_name());
                    self.errors.push(complaint::invalid(
                        place,
                        &shown,
                        &evaluation_error(&cause, &rule.message),
                    ));
                }
            }
        }
    }
}

fn broken(rule: &Rule, scope: &Context<'_>, schema: &Schema, value: &Value, path: &str) -> FieldError {
    let field = match (path, rule.field_path.as_str()) {
        ("", "") => "<nil>".to_owned(),
        ("", below) => below.trim_start_matches('.').to_owned(),
        (path, below) => format!("{path}{below}"),
    };
    let detail = message(rule, scope);
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => complaint::forbidden(field, &detail),
        Some("FieldValueRequired") => complaint::required(field, &detail),
        Some("FieldValueDuplicate") => complaint::duplicate(field, value),
        // Maps and lists are not repeated in the message.
        _ if ["object", "array"].contains(&schema.type_name()) => FieldError {
            field,
            reason: Reason::Invalid,
            message: format!("Invalid value: {detail}"),
        },
        _ => complaint::invalid(field, value, &detail),
    }
}

fn message(rule: &Rule, scope: &Context<'_>) -> String {
    if let Some(program) = &rule.message_program
        && let Ok(Cel::String(text)) = program.execute(scope)
    {
        let text = text.trim();
        if !text.is_empty() && !text.contains('\n') && text.len() <= MAX_MESSAGE_BYTES {
            return text.to_owned();
        }
    }
    if rule.has_message {
        rule.message.clone()
    } else {
        format!("failed rule: {}", rule.message)
    }
}

/// The cause in the words of the real server's evaluator.
fn evaluation_error(cause: &ExecutionError, rule: &str) -> String {
    let words = match cause {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(Cel::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnexpectedType { .. } => {
            return format!(
                "'no such overload': call arguments did not match a supported operator, function or macro signature \
                 for rule: {rule}"
            );
        }
        other => other.to_string(),
    };
    format!("{words} evaluating rule: {rule}")
}
