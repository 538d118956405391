//! Text into words.

use std::{iter::Peekable, str::CharIndices};

/// One word of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Name(String),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    /// An operator or a bracket.
    Sign(&'static str),
}

/// The longer ones first, so that `<=` is not read as `<`.
const SIGNS: [&str; 25] = [
    "&&", "||", "==", "!=", "<=", ">=", "[?", ".?", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(",
    ")", "[", "]", "{",
];

pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut lexer = Lexer {
        text,
        rest: text.char_indices().peekable(),
    };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next()? {
        tokens.push(token);
    }
    Ok(tokens)
}

struct Lexer<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
}

impl Lexer<'_> {
    fn next(&mut self) -> Result<Option<Token>, String> {
        self.skip_blanks();
        let Some(&(start, first)) = self.rest.peek() else {
            return Ok(None);
        };
        let here = &self.text[start..];
        if first.is_ascii_digit() || (first == '.' && here[1..].starts_with(|c: char| c.is_ascii_digit())) {
            return self.number(start).map(Some);
        }
        if let Some((prefix, raw)) = quote(here) {
            return self.string(prefix, raw).map(|text| Some(Token::Text(text)));
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let end = here.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let name = &here[..end.unwrap_or(here.len())];
            self.advance(name.len());
            return Ok(Some(Token::Name(name.to_owned())));
        }
        let sign = SIGNS.iter().chain(&["}"]).find(|sign| here.starts_with(**sign));
        let Some(sign) = sign else {
            return Err(format!("{first:?} at byte {start} means nothing"));
        };
        self.advance(sign.len());
        Ok(Some(Token::Sign(sign)))
    }

    fn skip_blanks(&mut self) {
        while let Some(&(start, character)) = self.rest.peek() {
            if self.text[start..].starts_with("//") {
                let length = self.text[start..].find('\n').unwrap_or(self.text.len() - start);
                self.advance(length);
            } else if character.is_ascii_whitespace() {
                self.rest.next();
            } else {
                return;
            }
        }
    }

    /// Past this many bytes.
    fn advance(&mut self, bytes: usize) {
        let Some(&(start, _)) = self.rest.peek() else { return };
        while self.rest.next_if(|(place, _)| *place < start + bytes).is_some() {}
    }

    fn number(&mut self, start: usize) -> Result<Token, String> {
        let here = &self.text[start..];
        let mut end = 0;
        let bytes = here.as_bytes();
        let hexadecimal = here.starts_with("0x") || here.starts_with("0X");
        let mut fraction = false;
        if hexadecimal {
            end = 2 + here[2..]
                .find(|c: char| !c.is_ascii_hexdigit())
                .unwrap_or(here.len() - 2);
        } else {
            while let Some(byte) = bytes.get(end) {
                let signed = matches!(byte, b'+' | b'-') && matches!(bytes[end - 1], b'e' | b'E');
                match byte {
                    b'0'..=b'9' => {}
                    b'.' if !fraction && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) => fraction = true,
                    b'e' | b'E' if end > 0 => fraction = true,
                    _ if signed => {}
                    _ => break,
                }
                end += 1;
            }
        }
        let digits = &here[..end];
        let unsigned = matches!(bytes.get(end), Some(b'u' | b'U'));
        self.advance(end + usize::from(unsigned));
        let wrong = || format!("{digits:?} is not a number");
        if fraction {
            return digits.parse().map(Token::Double).map_err(|_| wrong());
        }
        let value = match digits.get(2..) {
            Some(rest) if hexadecimal => u64::from_str_radix(rest, 16),
            _ => digits.parse::<u64>(),
        };
        let value = value.map_err(|_| wrong())?;
        if unsigned {
            return Ok(Token::Uint(value));
        }
        i64::try_from(value).map(Token::Int).map_err(|_| wrong())
    }

    fn string(&mut self, prefix: &str, raw: bool) -> Result<String, String> {
        let close = prefix.trim_start_matches(['r', 'R']);
        self.advance(prefix.len());
        let mut text = String::new();
        loop {
            let Some(&(start, character)) = self.rest.peek() else {
                return Err(format!("a string that starts with {prefix} does not end"));
            };
            if self.text[start..].starts_with(close) {
                self.advance(close.len());
                return Ok(text);
            }
            self.rest.next();
            if character == '\\' && !raw {
                text.push(self.escape()?);
            } else if character == '\n' && close.len() == 1 {
                return Err(format!("a string that starts with {prefix} does not end on its line"));
            } else {
                text.push(character);
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let (_, character) = self.rest.next().ok_or("a string ends within an escape")?;
        let number = |lexer: &mut Self, digits: usize, base: u32, first: u32| {
            let mut code = first;
            for _ in 0..digits {
                let digit = lexer.rest.next().and_then(|(_, digit)| digit.to_digit(base));
                code = code * base + digit.ok_or("an escape in a string lacks digits")?;
            }
            char::from_u32(code).ok_or_else(|| format!("escape {code:#x} is not a character"))
        };
        match character {
            'a' => Ok('\u{7}'),
            'b' => Ok('\u{8}'),
            'f' => Ok('\u{c}'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\u{b}'),
            '\\' | '?' | '"' | '\'' | '`' => Ok(character),
            'x' | 'X' => number(self, 2, 16, 0),
            'u' => number(self, 4, 16, 0),
            'U' => number(self, 8, 16, 0),
            '0'..='3' => number(self, 2, 8, u32::from(character) - u32::from('0')),
            other => Err(format!("escape \\{other} in a string means nothing")),
        }
    }
}

/// What a string here starts with, and whether backslashes in it are just that.
fn quote(here: &str) -> Option<(&str, bool)> {
    let raw = usize::from(here.starts_with(['r', 'R']));
    let quotes = &here[raw..];
    let length = ["\"\"\"", "'''", "\"", "'"]
        .iter()
        .find(|quote| quotes.starts_with(**quote))?
        .len();
    Some((&here[..raw + length], raw == 1))
}
