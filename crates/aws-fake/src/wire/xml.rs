//! Answers in XML, written as they are told.

use std::fmt::{Display, Write};

/// A document under construction.
#[derive(Debug, Default)]
pub struct Xml(String);

impl Xml {
    /// An element with a value.
    pub fn leaf(&mut self, name: &str, value: impl Display) {
        let mut text = String::new();
        write!(text, "{value}").expect("writing to a string succeeds");
        let text = escaped(&text);
        write!(self.0, "<{name}>{text}</{name}>").expect("writing to a string succeeds");
    }

    /// An element with a value, where there is one.
    pub fn maybe(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.leaf(name, value);
        }
    }

    /// An element with others inside.
    pub fn node(&mut self, name: &str, inside: impl FnOnce(&mut Xml)) {
        write!(self.0, "<{name}>").expect("writing to a string succeeds");
        inside(self);
        write!(self.0, "</{name}>").expect("writing to a string succeeds");
    }

    /// A list in EC2's form.
    pub fn items<T>(&mut self, name: &str, items: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut Xml, T)) {
        self.node(name, |xml| {
            for item in items {
                xml.node("item", |xml| each(xml, item));
            }
        });
    }

    /// A list in IAM's form.
    pub fn members<T>(&mut self, name: &str, items: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut Xml, T)) {
        self.node(name, |xml| {
            for item in items {
                xml.node("member", |xml| each(xml, item));
            }
        });
    }

    /// A list of plain values in EC2's form.
    pub fn words<T: Display>(&mut self, name: &str, words: impl IntoIterator<Item = T>) {
        self.node(name, |xml| {
            for word in words {
                xml.leaf("item", word);
            }
        });
    }

    pub fn into_text(self) -> String {
        self.0
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_and_lists_are_items() {
        let mut xml = Xml::default();
        xml.leaf("name", "a<b & \"c\"");
        xml.words("zones", ["a", "b"]);
        xml.maybe("absent", None::<u8>);
        assert_eq!(
            xml.into_text(),
            "<name>a&lt;b &amp; &quot;c&quot;</name><zones><item>a</item><item>b</item></zones>"
        );
    }
}
