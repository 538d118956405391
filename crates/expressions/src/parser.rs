//! Words into an expression.

use crate::{
    functions::{self, Functions},
    lexer::Token,
    value::Value,
};

/// An expression.
#[derive(Debug)]
pub(crate) enum Expr {
    Literal(Value),
    Name(String),
    Select {
        of: Box<Expr>,
        field: String,
        how: Lookup,
    },
    Index {
        of: Box<Expr>,
        at: Box<Expr>,
        how: Lookup,
    },
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Binary(Operator, Box<(Expr, Expr)>),
    /// True if one is, even where others fail.
    Any(Vec<Expr>),
    /// False if one is, even where others fail.
    All(Vec<Expr>),
    Choice(Box<(Expr, Expr, Expr)>),
    /// The target of a method comes first.
    Call {
        function: &'static str,
        arguments: Vec<Expr>,
    },
    Loop {
        over: Box<Expr>,
        name: String,
        kind: LoopKind,
        body: Box<Expr>,
    },
    Bind {
        name: String,
        value: Box<Expr>,
        body: Box<Expr>,
    },
}

/// What a lookup yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    Value,
    /// Whether there is a value.
    Presence,
    /// The value if there is one.
    Optional,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    In,
    Plus,
    Minus,
    Times,
    Divide,
    Remainder,
}

#[derive(Debug)]
pub(crate) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    Filter,
    /// With a condition on the values that are mapped.
    Map(Option<Box<Expr>>),
}

/// How deep expressions go: every bracket and every link of a chain is a step down when they are evaluated. The stack of
/// a small thread bears several times as much.
const DEEPEST: usize = 100;

pub(crate) fn parse(tokens: Vec<Token>, functions: Functions) -> Result<Expr, String> {
    let mut parser = Parser {
        functions,
        tokens,
        next: 0,
        depth: 0,
    };
    let expr = parser.choice()?;
    match parser.peek() {
        None => Ok(expr),
        Some(token) => Err(format!("{} comes after the end of the expression", show(token))),
    }
}

struct Parser {
    functions: Functions,
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

type Parsed = Result<Expr, String>;

const COMPARISONS: [(&str, Operator); 6] = [
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    ("<", Operator::Less),
    ("<=", Operator::AtMost),
    (">", Operator::Greater),
    (">=", Operator::AtLeast),
];
const SUMS: [(&str, Operator); 2] = [("+", Operator::Plus), ("-", Operator::Minus)];
const PRODUCTS: [(&str, Operator); 3] = [
    ("*", Operator::Times),
    ("/", Operator::Divide),
    ("%", Operator::Remainder),
];

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(found)) if *found == sign);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.take(sign) {
            return Ok(());
        }
        let found = self.peek().map_or_else(|| "the end".to_owned(), show);
        Err(format!("{sign:?} is missing before {found}"))
    }

    fn name(&mut self) -> Result<String, String> {
        match self.peek() {
            Some(Token::Name(name)) => {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => Err("a name is missing".to_owned()),
        }
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("it is nested more than {DEEPEST} deep"));
        }
        Ok(())
    }

    /// Everything that can stand between brackets.
    fn choice(&mut self) -> Parsed {
        let before = self.depth;
        self.deeper()?;
        let condition = self.any()?;
        let expr = if self.take("?") {
            let yes = self.any()?;
            self.expect(":")?;
            Expr::Choice(Box::new((condition, yes, self.choice()?)))
        } else {
            condition
        };
        self.depth = before;
        Ok(expr)
    }

    fn any(&mut self) -> Parsed {
        self.joined("||", Self::all, Expr::Any)
    }

    fn all(&mut self) -> Parsed {
        self.joined("&&", Self::comparison, Expr::All)
    }

    fn joined(&mut self, sign: &str, part: fn(&mut Self) -> Parsed, join: fn(Vec<Expr>) -> Expr) -> Parsed {
        let first = part(self)?;
        let mut parts = vec![first];
        while self.take(sign) {
            parts.push(part(self)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { join(parts) })
    }

    fn comparison(&mut self) -> Parsed {
        self.chain(Self::sum, |parser| {
            if matches!(parser.peek(), Some(Token::Name(name)) if name == "in") {
                parser.next += 1;
                return Some(Operator::In);
            }
            parser.operator(&COMPARISONS)
        })
    }

    fn sum(&mut self) -> Parsed {
        self.chain(Self::product, |parser| parser.operator(&SUMS))
    }

    fn product(&mut self) -> Parsed {
        self.chain(Self::unary, |parser| parser.operator(&PRODUCTS))
    }

    fn operator(&mut self, known: &[(&str, Operator)]) -> Option<Operator> {
        let (_, operator) = known.iter().find(|(sign, _)| self.take(sign))?;
        Some(*operator)
    }

    /// Parts with operators between them, from the left.
    fn chain(&mut self, part: fn(&mut Self) -> Parsed, operator: fn(&mut Self) -> Option<Operator>) -> Parsed {
        let before = self.depth;
        let mut left = part(self)?;
        while let Some(operator) = operator(self) {
            self.deeper()?;
            left = Expr::Binary(operator, Box::new((left, part(self)?)));
        }
        self.depth = before;
        Ok(left)
    }

    fn unary(&mut self) -> Parsed {
        let before = self.depth;
        self.deeper()?;
        let expr = if self.take("!") {
            Expr::Not(Box::new(self.unary()?))
        } else if self.take("-") {
            Expr::Negative(Box::new(self.unary()?))
        } else {
            self.member()?
        };
        self.depth = before;
        Ok(expr)
    }

    fn member(&mut self) -> Parsed {
        let before = self.depth;
        let mut expr = self.primary()?;
        loop {
            self.deeper()?;
            if self.take(".?") {
                expr = select(expr, self.name()?, Lookup::Optional);
            } else if self.take(".") {
                let name = self.name()?;
                expr = if self.take("(") {
                    self.method(expr, name)?
                } else {
                    select(expr, name, Lookup::Value)
                };
            } else if self.take("[?") {
                expr = self.index(expr, Lookup::Optional)?;
            } else if self.take("[") {
                expr = self.index(expr, Lookup::Value)?;
            } else {
                break;
            }
        }
        self.depth = before;
        Ok(expr)
    }

    fn index(&mut self, of: Expr, how: Lookup) -> Parsed {
        let at = self.choice()?;
        self.expect("]")?;
        Ok(Expr::Index {
            of: Box::new(of),
            at: Box::new(at),
            how,
        })
    }

    fn primary(&mut self) -> Parsed {
        if self.take("(") {
            let expr = self.choice()?;
            self.expect(")")?;
            return Ok(expr);
        }
        if self.take("[") {
            return Ok(Expr::List(self.list("]")?));
        }
        if self.take("{") {
            return self.map();
        }
        let Some(token) = self.peek().cloned() else {
            return Err("it ends where a value is missing".to_owned());
        };
        self.next += 1;
        Ok(match token {
            Token::Int(number) => Expr::Literal(Value::Int(number)),
            Token::Uint(number) => Expr::Literal(Value::Uint(number)),
            Token::Double(number) => Expr::Literal(Value::Double(number)),
            Token::Text(text) => Expr::Literal(Value::text(&text)),
            Token::Sign(_) => return Err(format!("{} stands where a value is missing", show(&token))),
            Token::Name(name) => match name.as_str() {
                "true" => Expr::Literal(Value::Bool(true)),
                "false" => Expr::Literal(Value::Bool(false)),
                "null" => Expr::Literal(Value::Null),
                _ if self.take("(") => self.function(&name)?,
                _ => Expr::Name(name),
            },
        })
    }

    fn list(&mut self, close: &str) -> Result<Vec<Expr>, String> {
        let mut parts = Vec::new();
        while !self.take(close) {
            parts.push(self.choice()?);
            if !self.take(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(parts)
    }

    fn map(&mut self) -> Parsed {
        let mut entries = Vec::new();
        while !self.take("}") {
            let key = self.choice()?;
            self.expect(":")?;
            entries.push((key, self.choice()?));
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(Expr::Map(entries))
    }

    fn function(&mut self, name: &str) -> Parsed {
        let mut arguments = self.list(")")?;
        if name == "has" {
            return match (arguments.pop(), arguments.is_empty()) {
                (Some(Expr::Select { of, field, .. }), true) => Ok(select(*of, field, Lookup::Presence)),
                _ => Err("has() takes one selection, such as has(device.attributes[\"domain\"].name)".to_owned()),
            };
        }
        self.call(name, arguments)
    }

    fn method(&mut self, target: Expr, name: String) -> Parsed {
        let arguments = self.list(")")?;
        let namespace = match &target {
            Expr::Name(namespace) => Some(namespace.as_str()),
            _ => None,
        };
        match (namespace, name.as_str()) {
            (Some("cel"), "bind") => bind(arguments),
            (Some(namespace @ ("sets" | "optional")), _) => self.call(&format!("{namespace}.{name}"), arguments),
            (_, "all" | "exists" | "exists_one" | "filter" | "map") => round(target, &name, arguments),
            _ => {
                let arguments = std::iter::once(target).chain(arguments).collect();
                self.call(&format!(".{name}"), arguments)
            }
        }
    }

    /// A function of this name, which for methods starts with a dot, and with as many arguments.
    fn call(&self, name: &str, arguments: Vec<Expr>) -> Parsed {
        match functions::known(self.functions, name, arguments.len()) {
            Some(function) => Ok(Expr::Call { function, arguments }),
            None => Err(format!(
                "function {} does not exist, or not with {} arguments",
                name.trim_start_matches('.'),
                arguments.len() - usize::from(name.starts_with('.'))
            )),
        }
    }
}

fn select(of: Expr, field: String, how: Lookup) -> Expr {
    Expr::Select {
        of: Box::new(of),
        field,
        how,
    }
}

fn bind(arguments: Vec<Expr>) -> Parsed {
    match <[Expr; 3]>::try_from(arguments) {
        Ok([Expr::Name(name), value, body]) => Ok(Expr::Bind {
            name,
            value: Box::new(value),
            body: Box::new(body),
        }),
        _ => Err("cel.bind() takes a name, a value and an expression".to_owned()),
    }
}

fn round(over: Expr, kind: &str, arguments: Vec<Expr>) -> Parsed {
    let mut arguments = arguments.into_iter();
    let Some(Expr::Name(name)) = arguments.next() else {
        return Err(format!("{kind}() takes a name first"));
    };
    let (kind, body) = match (kind, arguments.next(), arguments.next(), arguments.next()) {
        ("all", Some(body), None, _) => (LoopKind::All, body),
        ("exists", Some(body), None, _) => (LoopKind::Exists, body),
        ("exists_one", Some(body), None, _) => (LoopKind::ExistsOne, body),
        ("filter", Some(body), None, _) => (LoopKind::Filter, body),
        ("map", Some(body), None, _) => (LoopKind::Map(None), body),
        ("map", Some(condition), Some(body), None) => (LoopKind::Map(Some(Box::new(condition))), body),
        (kind, ..) => return Err(format!("{kind}() takes a name and an expression")),
    };
    Ok(Expr::Loop {
        over: Box::new(over),
        name,
        kind,
        body: Box::new(body),
    })
}

fn show(token: &Token) -> String {
    match token {
        Token::Name(name) => format!("{name:?}"),
        Token::Int(number) => number.to_string(),
        Token::Uint(number) => format!("{number}u"),
        Token::Double(number) => number.to_string(),
        Token::Text(text) => format!("string {text:?}"),
        Token::Sign(sign) => format!("{sign:?}"),
    }
}
