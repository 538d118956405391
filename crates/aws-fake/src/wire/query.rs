//! The parameters of the query protocols: `Filter.1.Value.2=x` as a tree.
//!
//! EC2 numbers the members of a list directly, IAM, STS and SQS write `member.1`; both are read.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// A value, or further names below this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    value: Option<String>,
    below: BTreeMap<String, Params>,
}

impl Params {
    pub fn parse(body: &[u8]) -> Self {
        let mut root = Self::default();
        for (name, value) in form_urlencoded::parse(body) {
            let mut at = &mut root;
            for part in name.split('.').filter(|part| *part != "member") {
                at = at.below.entry(part.to_owned()).or_default();
            }
            at.value = Some(value.into_owned());
        }
        root
    }

    /// What lies below a name; nothing when nothing does.
    pub fn get(&self, name: &str) -> Option<&Params> {
        self.below.get(name)
    }

    /// The value under a dotted path.
    pub fn text(&self, path: &str) -> Option<&str> {
        let mut at = self;
        for part in path.split('.') {
            at = at.below.get(part)?;
        }
        at.value.as_deref()
    }

    pub fn required(&self, path: &str) -> Result<&str, Refusal> {
        self.text(path).ok_or_else(|| Refusal::missing(path))
    }

    /// The members of a list in the order of their numbers.
    pub fn list(&self, name: &str) -> Vec<&Params> {
        let Some(list) = self.below.get(name) else {
            return Vec::new();
        };
        let mut members: Vec<(u32, &Params)> = list
            .below
            .iter()
            .filter_map(|(number, member)| Some((number.parse().ok()?, member)))
            .collect();
        members.sort_by_key(|(number, _)| *number);
        members.into_iter().map(|(_, member)| member).collect()
    }

    /// The members of a list of plain values.
    pub fn texts(&self, name: &str) -> Vec<String> {
        let members = self.list(name).into_iter();
        members.filter_map(|member| member.value.clone()).collect()
    }

    pub fn flag(&self, path: &str) -> bool {
        self.text(path) == Some("true")
    }

    pub fn number<N: std::str::FromStr>(&self, path: &str) -> Result<Option<N>, Refusal> {
        let Some(text) = self.text(path) else { return Ok(None) };
        let number = text.parse();
        number
            .map(Some)
            .map_err(|_| Refusal::bad_value(format!("Invalid value '{text}' for {path}")))
    }

    /// Refuses names that this call does not have, so that nothing is ignored in silence.
    pub fn only(&self, known: &[&str]) -> Result<(), Refusal> {
        let always = ["Action", "Version", "DryRun"];
        let stranger = self
            .below
            .keys()
            .find(|name| !known.contains(&name.as_str()) && !always.contains(&name.as_str()));
        match stranger {
            Some(name) => Err(Refusal::new(
                "UnknownParameter",
                format!("The parameter {name} is not recognized"),
            )),
            None => Ok(()),
        }
    }

    /// As recordings show it: lists as lists, user data as text, without what names the call.
    pub fn to_json(&self) -> Value {
        let mut shown = self.shown("");
        if let Some(root) = shown.as_object_mut() {
            root.remove("Action");
            root.remove("Version");
        }
        shown
    }

    fn shown(&self, name: &str) -> Value {
        if self.below.is_empty() {
            let value = self.value.clone().unwrap_or_default();
            return Value::String(if name == "UserData" { decoded(value) } else { value });
        }
        if self
            .below
            .keys()
            .all(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        {
            let mut members: Vec<(u32, Value)> = self
                .below
                .iter()
                .map(|(number, member)| (number.parse().unwrap_or(u32::MAX), member.shown("")))
                .collect();
            members.sort_by_key(|(number, _)| *number);
            return members.into_iter().map(|(_, member)| member).collect();
        }
        let entries = self.below.iter();
        Value::Object(
            entries
                .map(|(name, below)| (name.clone(), below.shown(name)))
                .collect::<Map<_, _>>(),
        )
    }
}

fn decoded(text: String) -> String {
    let bytes = STANDARD.decode(&text).ok();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_the_order_of_their_numbers() {
        let params = Params::parse(b"Action=A&Filter.10.Name=z&Filter.2.Name=b&Filter.2.Value.1=x&Filter.2.Value.2=y");
        let names: Vec<_> = params
            .list("Filter")
            .iter()
            .filter_map(|filter| filter.text("Name"))
            .collect();
        assert_eq!(names, ["b", "z"]);
        assert_eq!(params.list("Filter")[0].texts("Value"), ["x", "y"]);
    }

    #[test]
    fn members_are_lists_too() {
        let params = Params::parse(b"Tags.member.1.Key=team&Tags.member.1.Value=a%26b");
        assert_eq!(params.list("Tags")[0].text("Value"), Some("a&b"));
    }

    #[test]
    fn strangers_are_refused_and_the_common_ones_are_not() {
        let params = Params::parse(b"Action=A&Version=1&DryRun=true&Colour=red");
        assert!(params.only(&["Colour"]).is_ok());
        assert_eq!(params.only(&[]).expect_err("a stranger").code, "UnknownParameter");
    }

    #[test]
    fn recordings_show_user_data_as_text() {
        let params = Params::parse(b"Action=A&Data.UserData=aGVsbG8%3D&Id.1=a&Id.2=b");
        let expected = serde_json::json!({"Data": {"UserData": "hello"}, "Id": ["a", "b"]});
        assert_eq!(params.to_json(), expected);
    }
}
