//! CEL: expressions that users write into objects, read once and evaluated many times.
//!
//! [`lexer`] and [`parser`] read an expression; [`check`] says of which type it is, for those who have to know before
//! there is anything to evaluate it on; [`eval`] and [`functions`] evaluate it.
//!
//! The evaluator is our own and small. The crate `cel` that others build on needs more than two megabytes of stack for
//! sixteen nested parentheses, panics on expressions that make objects, walks maps in the order of their hashes and has
//! no bound on what an expression may cost. The API server bounds all of this when an object is stored, but files for
//! the command line have met no API server, and it knows nothing of expressions inside of texts. Left out are network
//! addresses, URLs, formats, times and bytes; an expression that uses them is refused when it is read.
//!
//! ```
//! use expressions::{Expression, Functions, Type, Value};
//!
//! let expression = Expression::read("min(cores * 10, 110)", Functions::Arithmetic).unwrap();
//! assert_eq!(expression.type_over(&[("cores", Type::Int)]), Ok(Type::Int));
//! assert_eq!(expression.evaluate(&[("cores", Value::Int(4))]), Some(Value::Int(40)));
//! ```

mod check;
mod eval;
mod functions;
mod lexer;
mod parser;
mod value;

pub use check::Type;
pub use functions::Functions;
pub use value::{Key, Value};

/// The API server's limit, in bytes.
const LONGEST: usize = 10 * 1024;

/// An expression that has been read.
#[derive(Debug)]
pub struct Expression(parser::Expr);

impl Expression {
    /// The error says what is wrong, in words for the author of the expression.
    pub fn read(text: &str, functions: Functions) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("it has {} bytes, more than {LONGEST}", text.len()));
        }
        parser::parse(lexer::tokens(text)?, functions).map(Expression)
    }

    /// What every evaluation yields that yields anything, when the variables are of these types and there are no others.
    /// The error says where types do not fit together, in words for the author of the expression.
    pub fn type_over(&self, variables: &[(&str, Type)]) -> Result<Type, String> {
        check::type_of(&self.0, variables)
    }

    /// `None` when the expression fails: something is missing, of another type, out of range, or it takes too long.
    pub fn evaluate(&self, variables: &[(&str, Value)]) -> Option<Value> {
        eval::evaluate(&self.0, variables)
    }
}
