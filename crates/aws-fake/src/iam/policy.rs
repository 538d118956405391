//! Policy documents: statements with actions, resources and conditions.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::glob;

#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("the policy has no statements")]
    NoStatements,
    #[error("a statement has the effect {0}")]
    Effect(String),
    #[error("the condition {0} is not known")]
    Condition(String),
}

/// One thing that a call needs: an action on a resource, with what conditions can look at.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ask {
    pub action: String,
    pub resource: String,
    /// Keys as policies write them, such as `aws:RequestTag/team`.
    pub context: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    /// No statement allows it.
    NotAllowed,
    /// A statement denies it, and no other can change that.
    Forbidden,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy(Vec<Statement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Statement {
    allows: bool,
    actions: Vec<String>,
    resources: Vec<String>,
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    test: Test,
    negated: bool,
    quantifier: Quantifier,
    /// Holds where the key is missing.
    if_exists: bool,
    key: String,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    Equals,
    EqualsIgnoringCase,
    Like,
    /// Whether the key is missing.
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantifier {
    One,
    All,
    Any,
}

impl Policy {
    pub fn parse(document: &Value) -> Result<Self, PolicyError> {
        let statements = match &document["Statement"] {
            Value::Array(all) => all.iter().collect(),
            Value::Object(_) => vec![&document["Statement"]],
            _ => return Err(PolicyError::NoStatements),
        };
        let statements = statements.into_iter().map(Statement::parse);
        Ok(Self(statements.collect::<Result<_, _>>()?))
    }

    pub fn verdict(&self, ask: &Ask) -> Verdict {
        let mut concerned = self.0.iter().filter(|statement| statement.concerns(ask)).peekable();
        if concerned.peek().is_none() {
            return Verdict::NotAllowed;
        }
        if concerned.all(|statement| statement.allows) {
            Verdict::Allowed
        } else {
            Verdict::Forbidden
        }
    }
}

fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(word) => vec![word.clone()],
        Value::Bool(flag) => vec![flag.to_string()],
        Value::Array(all) => all.iter().flat_map(words).collect(),
        _ => Vec::new(),
    }
}

impl Statement {
    fn parse(value: &Value) -> Result<Self, PolicyError> {
        let effect = value["Effect"].as_str().unwrap_or_default();
        let allows = match effect {
            "Allow" => true,
            "Deny" => false,
            other => return Err(PolicyError::Effect(other.to_owned())),
        };
        let mut conditions = Vec::new();
        for (operator, keys) in value["Condition"].as_object().into_iter().flatten() {
            for (key, values) in keys.as_object().into_iter().flatten() {
                conditions.push(Condition::parse(operator, key, words(values))?);
            }
        }
        Ok(Self {
            allows,
            actions: words(&value["Action"]),
            resources: words(&value["Resource"]),
            conditions,
        })
    }

    fn concerns(&self, ask: &Ask) -> bool {
        // Actions are compared without regard to case, resources with.
        let action = ask.action.to_lowercase();
        self.actions
            .iter()
            .any(|pattern| glob::fits(&pattern.to_lowercase(), &action))
            && self.resources.iter().any(|pattern| glob::fits(pattern, &ask.resource))
            && self.conditions.iter().all(|condition| condition.holds(ask))
    }
}

impl Condition {
    fn parse(operator: &str, key: &str, values: Vec<String>) -> Result<Self, PolicyError> {
        let (quantifier, rest) = match operator.split_once(':') {
            Some(("ForAllValues", rest)) => (Quantifier::All, rest),
            Some(("ForAnyValue", rest)) => (Quantifier::Any, rest),
            Some(_) => return Err(PolicyError::Condition(operator.to_owned())),
            None => (Quantifier::One, operator),
        };
        let plain = rest.strip_suffix("IfExists");
        let (test, negated) = match plain.unwrap_or(rest) {
            "StringEquals" | "ArnEquals" | "Bool" => (Test::Equals, false),
            "StringNotEquals" | "ArnNotEquals" => (Test::Equals, true),
            "StringEqualsIgnoreCase" => (Test::EqualsIgnoringCase, false),
            "StringLike" | "ArnLike" => (Test::Like, false),
            "StringNotLike" | "ArnNotLike" => (Test::Like, true),
            "Null" => (Test::Null, false),
            _ => return Err(PolicyError::Condition(operator.to_owned())),
        };
        Ok(Self {
            test,
            negated,
            quantifier,
            if_exists: plain.is_some(),
            key: key.to_owned(),
            values,
        })
    }

    fn holds(&self, ask: &Ask) -> bool {
        // Keys are compared without regard to case, except for the part that names a tag.
        let same = |known: &String| match (known.split_once('/'), self.key.split_once('/')) {
            (Some((kind, tag)), Some((asked, asked_tag))) => kind.eq_ignore_ascii_case(asked) && tag == asked_tag,
            (None, None) => known.eq_ignore_ascii_case(&self.key),
            _ => false,
        };
        let found = ask
            .context
            .iter()
            .find(|(known, _)| same(known))
            .map(|(_, values)| values);
        if self.test == Test::Null {
            let missing = found.is_none().to_string();
            return self.values.contains(&missing);
        }
        let Some(found) = found else {
            return self.if_exists || self.negated || self.quantifier == Quantifier::All;
        };
        let matches = |value: &String| {
            let fits = |wanted: &String| match self.test {
                Test::Equals | Test::Null => wanted == value,
                Test::EqualsIgnoringCase => wanted.eq_ignore_ascii_case(value),
                Test::Like => glob::fits(wanted, value),
            };
            self.values.iter().any(fits) != self.negated
        };
        match self.quantifier {
            Quantifier::All => found.iter().all(matches),
            Quantifier::One | Quantifier::Any => found.iter().any(matches),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    type Context = &'static [(&'static str, &'static [&'static str])];

    fn ask(action: &str, resource: &str, context: Context) -> Ask {
        let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let context = context.iter().map(|(key, values)| ((*key).to_owned(), strings(values)));
        Ask {
            action: action.to_owned(),
            resource: resource.to_owned(),
            context: context.collect(),
        }
    }

    #[test]
    fn a_denial_outweighs_every_allowance() {
        let policy = Policy::parse(&json!({"Statement": [
            {"Effect": "Allow", "Action": "ec2:*", "Resource": "*"},
            {"Effect": "Deny", "Action": ["ec2:Terminate*"], "Resource": "arn:aws:ec2:*:*:instance/*"},
        ]}))
        .expect("a policy");
        let table = [
            ("ec2:DescribeSubnets", "*", Verdict::Allowed),
            ("EC2:describesubnets", "*", Verdict::Allowed),
            (
                "ec2:TerminateInstances",
                "arn:aws:ec2:us-west-2:1:instance/i-1",
                Verdict::Forbidden,
            ),
            ("iam:GetRole", "*", Verdict::NotAllowed),
        ];
        for (action, resource, expected) in table {
            assert_eq!(policy.verdict(&ask(action, resource, &[])), expected, "{action}");
        }
    }

    #[test]
    fn conditions_hold_or_do_not() {
        const TAG: &str = "aws:RequestTag/team";
        const KEYS: &str = "aws:TagKeys";
        type Row = (&'static str, &'static str, Value, Context, bool);
        let table: [Row; 13] = [
            ("StringEquals", TAG, json!("web"), &[(TAG, &["web"])], true),
            ("StringEquals", TAG, json!(["api", "web"]), &[(TAG, &["web"])], true),
            ("StringEquals", TAG, json!("web"), &[], false),
            (
                "StringEquals",
                TAG,
                json!("web"),
                &[("AWS:requesttag/team", &["web"])],
                true,
            ),
            (
                "StringEquals",
                TAG,
                json!("web"),
                &[("aws:RequestTag/Team", &["web"])],
                false,
            ),
            ("StringEqualsIfExists", TAG, json!("web"), &[], true),
            ("StringNotEquals", TAG, json!("web"), &[], true),
            ("StringNotEquals", TAG, json!("web"), &[(TAG, &["web"])], false),
            ("StringLike", TAG, json!("*"), &[(TAG, &[""])], true),
            ("StringLike", TAG, json!("*"), &[], false),
            (
                "ForAllValues:StringEquals",
                KEYS,
                json!(["Name", "team"]),
                &[(KEYS, &["team"])],
                true,
            ),
            (
                "ForAllValues:StringEquals",
                KEYS,
                json!(["Name"]),
                &[(KEYS, &["team", "Name"])],
                false,
            ),
            ("Null", TAG, json!("true"), &[], true),
        ];
        for (operator, key, value, context, expected) in table {
            let condition = Condition::parse(operator, key, words(&value)).expect("a condition");
            assert_eq!(
                condition.holds(&ask("a", "r", context)),
                expected,
                "{operator} {value} {context:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_evaluated_is_not_accepted() {
        let bad = json!({"Statement": {"Effect": "Allow", "Condition": {"DateLessThan": {"aws:CurrentTime": "2026"}}}});
        assert!(matches!(Policy::parse(&bad), Err(PolicyError::Condition(_))));
        assert!(matches!(Policy::parse(&json!({})), Err(PolicyError::NoStatements)));
        let maybe = json!({"Statement": {"Effect": "Perhaps"}});
        assert!(matches!(Policy::parse(&maybe), Err(PolicyError::Effect(_))));
    }
}
