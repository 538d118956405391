//! Label selectors in the query syntax (`a=b,c in (d,e),!f`) and in the object form (`matchLabels`, `matchExpressions`).

use serde_json::Value;

use crate::names;

/// All requirements have to hold. Without any, everything matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
    /// The object form can select nothing at all, which a list of requirements cannot say.
    nothing: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

impl LabelSelector {
    /// Reads the query syntax.
    ///
    /// *Errors*: the real server's complaint, without the prefix that names the parameter.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser {
            tokens: scan(text)?,
            next: 0,
        };
        let mut requirements = Vec::new();
        while parser.peek() != &Token::End {
            requirements.push(
                parser
                    .requirement()
                    .map_err(|cause| format!("unable to parse requirement: {cause}"))?,
            );
            match parser.take() {
                Token::End => break,
                Token::Comma => match parser.peek() {
                    Token::Word(_) | Token::Not => {}
                    other => return Err(format!("found '{other}', expected: identifier after ','")),
                },
                other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
            }
        }
        Ok(Self {
            requirements,
            nothing: false,
        })
    }

    /// Reads a `LabelSelector` object. Null selects nothing; an empty object selects everything.
    pub fn from_object(selector: &Value) -> Self {
        let Some(selector) = selector.as_object() else {
            return Self {
                requirements: Vec::new(),
                nothing: true,
            };
        };
        let mut requirements = Vec::new();
        for (key, value) in selector
            .get("matchLabels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement {
                key: key.clone(),
                test: Test::In(vec![value]),
            });
        }
        for expression in selector
            .get("matchExpressions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let values = expression["values"].as_array().into_iter().flatten();
            let values: Vec<String> = values.filter_map(Value::as_str).map(str::to_owned).collect();
            let test = match expression["operator"].as_str() {
                Some("In") => Test::In(values),
                Some("NotIn") => Test::NotIn(values),
                Some("Exists") => Test::Exists,
                _ => Test::Absent,
            };
            let key = expression["key"].as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement { key, test });
        }
        Self {
            requirements,
            nothing: false,
        }
    }

    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    /// `labels` is the map of an object's labels, or null.
    pub fn matches(&self, labels: &Value) -> bool {
        !self.nothing && self.requirements.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    fn matches(&self, labels: &Value) -> bool {
        let value = labels.get(&self.key).and_then(Value::as_str);
        let number = || value.and_then(|text| text.parse::<i64>().ok());
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.iter().any(|wanted| wanted == value)),
            Test::NotIn(values) => value.is_none_or(|value| values.iter().all(|unwanted| unwanted != value)),
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::Above(bound) => number().is_some_and(|number| number > *bound),
            Test::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Not,
    Equal,
    DoubleEqual,
    NotEqual,
    Above,
    Below,
    Open,
    Close,
    Comma,
    End,
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Token::Word(word) => word,
            Token::Not => "!",
            Token::Equal => "=",
            Token::DoubleEqual => "==",
            Token::NotEqual => "!=",
            Token::Above => ">",
            Token::Below => "<",
            Token::Open => "(",
            Token::Close => ")",
            Token::Comma => ",",
            Token::End => "",
        })
    }
}

fn scan(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(&next) = chars.peek() {
        let token = match next {
            ' ' | '\t' | '\r' | '\n' => {
                chars.next();
                continue;
            }
            '(' => single(&mut chars, Token::Open),
            ')' => single(&mut chars, Token::Close),
            ',' => single(&mut chars, Token::Comma),
            '>' => single(&mut chars, Token::Above),
            '<' => single(&mut chars, Token::Below),
            '=' => with_equal(&mut chars, Token::Equal, Token::DoubleEqual),
            '!' => with_equal(&mut chars, Token::Not, Token::NotEqual),
            _ => {
                let mut word = String::new();
                while let Some(&next) = chars.peek()
                    && !" \t\r\n=!(),<>".contains(next)
                {
                    word.push(next);
                    chars.next();
                }
                Token::Word(word)
            }
        };
        tokens.push(token);
    }
    tokens.push(Token::End);
    Ok(tokens)
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn single(chars: &mut Chars<'_>, token: Token) -> Token {
    chars.next();
    token
}

fn with_equal(chars: &mut Chars<'_>, short: Token, long: Token) -> Token {
    chars.next();
    if chars.next_if_eq(&'=').is_some() { long } else { short }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.next).unwrap_or(&Token::End)
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.peek() == &Token::Not;
        if negated {
            self.take();
        }
        let key = match self.take() {
            Token::Word(key) => key,
            other => return Err(format!("found '{other}', expected: identifier")),
        };
        let problems = names::label_key_problems(&key);
        if !problems.is_empty() {
            return Err(format!("<nil>: Invalid value: {key:?}: {}", problems.join("; ")));
        }
        let test = match self.peek() {
            Token::End | Token::Comma if negated => Test::Absent,
            Token::End | Token::Comma => Test::Exists,
            _ => self.test()?,
        };
        if let Test::In(values) | Test::NotIn(values) = &test {
            for (index, value) in values.iter().enumerate() {
                let problems = names::label_value_problems(value);
                if !problems.is_empty() {
                    let problems = problems.join("; ");
                    return Err(format!("values[{index}][{key}]: Invalid value: {value:?}: {problems}"));
                }
            }
        }
        Ok(Requirement { key, test })
    }

    fn test(&mut self) -> Result<Test, String> {
        Ok(match self.take() {
            Token::Equal | Token::DoubleEqual => Test::In(vec![self.exact_value()?]),
            Token::NotEqual => Test::NotIn(vec![self.exact_value()?]),
            Token::Word(word) if word == "in" => Test::In(self.values()?),
            Token::Word(word) if word == "notin" => Test::NotIn(self.values()?),
            Token::Above => Test::Above(self.number()?),
            Token::Below => Test::Below(self.number()?),
            other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
        })
    }

    fn exact_value(&mut self) -> Result<String, String> {
        match self.peek() {
            Token::End | Token::Comma => Ok(String::new()),
            _ => match self.take() {
                Token::Word(word) => Ok(word),
                other => Err(format!("found '{other}', expected: identifier")),
            },
        }
    }

    fn number(&mut self) -> Result<i64, String> {
        let text = self.exact_value()?;
        text.parse().map_err(|_| {
            format!("values[0]: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must be an integer")
        })
    }

    /// `(a,b)`; a missing value between commas is the empty string, as `()` is one empty string.
    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.take() {
            Token::Open => {}
            other => return Err(format!("found '{other}' expected: '('")),
        }
        let mut values = Vec::new();
        let mut current = String::new();
        loop {
            match self.take() {
                Token::Word(word) if current.is_empty() => current = word,
                Token::Comma => values.push(std::mem::take(&mut current)),
                Token::Close => {
                    values.push(current);
                    return Ok(values);
                }
                other => return Err(format!("found '{other}', expected: ',', ')' or identifier")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(selector: &str, expected: bool) {
        let labels = json!({ "app": "web", "tier": "front", "size": "5" });
        let parsed = LabelSelector::parse(selector).expect("the selector is well formed");
        assert_eq!(parsed.matches(&labels), expected, "{selector}");
    }

    #[test]
    fn every_form_is_understood() {
        check("", true);
        check("app=web", true);
        check("app==web,tier!=back", true);
        check("app = web , tier", true);
        check("app in (api, web)", true);
        check("app in (api)", false);
        check("app notin (api,)", true);
        check("absent notin (api)", true);
        check("absent in ()", false);
        check("!absent", true);
        check("!app", false);
        check("size>4,size<6", true);
        check("size>5", false);
        check("app=", false);
    }

    #[test]
    fn malformed_selectors_are_refused_in_the_servers_words() {
        let complaint = |text: &str| LabelSelector::parse(text).expect_err("the selector is malformed");
        assert_eq!(complaint("a=b,"), "found '', expected: identifier after ','");
        assert_eq!(
            complaint("a in b"),
            "unable to parse requirement: found 'b' expected: '('"
        );
        assert!(complaint("a b").starts_with("unable to parse requirement: found 'b', expected: in, notin"));
    }

    #[test]
    fn the_object_form_tells_nothing_from_everything() {
        let labels = json!({ "app": "web" });
        assert!(!LabelSelector::from_object(&Value::Null).matches(&labels));
        assert!(LabelSelector::from_object(&json!({})).matches(&labels));
        let both = json!({
            "matchLabels": { "app": "web" },
            "matchExpressions": [{ "key": "gone", "operator": "DoesNotExist" }],
        });
        assert!(LabelSelector::from_object(&both).matches(&labels));
        assert!(!LabelSelector::from_object(&both).matches(&Value::Null));
    }
}
