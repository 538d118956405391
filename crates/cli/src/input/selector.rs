//! Label selectors as kubectl users write them: `app=web,tier!=test,zone in (a,b),!spot`.

use std::{collections::BTreeSet, str::FromStr};

use model::{
    LabelValue, Labels,
    pod::LabelSelector,
    requirement::{IntRange, Requirement, Values},
};

/// A selection of objects by label.
#[derive(Clone, Debug, PartialEq)]
pub struct Selector(LabelSelector);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a selector: write key, !key, key=value, key!=value, key in (a,b) or key notin (a,b)")]
pub struct InvalidSelector(String);

impl Selector {
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.matches(labels)
    }
}

impl FromStr for Selector {
    type Err = InvalidSelector;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let requirements = parts(text).map(requirement).collect::<Result<_, _>>()?;
        Ok(Self(LabelSelector { requirements }))
    }
}

/// What stands between commas outside of parentheses.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let parts = text.split(move |letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

fn requirement(text: &str) -> Result<Requirement, InvalidSelector> {
    let invalid = || InvalidSelector(text.to_owned());
    let (key, values) = if let Some(key) = text.strip_prefix('!') {
        (key, Values::NONE)
    } else if let Some((key, value)) = text.split_once("!=") {
        (key, without([value.trim().into()].into()))
    } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (key, Values::Only([value.trim().into()].into()))
    } else if let Some((key, rest)) = text.split_once(char::is_whitespace) {
        let (word, list) = rest.trim().split_once('(').ok_or_else(invalid)?;
        let list = list.strip_suffix(')').ok_or_else(invalid)?;
        let values: BTreeSet<LabelValue> = list.split(',').map(|value| value.trim().into()).collect();
        match word.trim() {
            "in" => (key, Values::Only(values)),
            "notin" => (key, without(values)),
            _ => return Err(invalid()),
        }
    } else {
        (text, Values::ANY)
    };
    let key = key.trim();
    if key.is_empty() || key.contains(|letter: char| letter.is_whitespace() || "()!=".contains(letter)) {
        return Err(invalid());
    }
    Ok(Requirement::of(key, values))
}

fn without(except: BTreeSet<LabelValue>) -> Values {
    Values::AllBut {
        except,
        range: IntRange::ALL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(selector: &str, labels: &[(&str, &str)], expected: bool) {
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect();
        let selector: Selector = selector.parse().expect(selector);
        assert_eq!(selector.matches(&labels), expected, "{selector:?} on {labels:?}");
    }

    #[test]
    fn selectors_mean_what_they_mean_to_kubectl() {
        let web = [("app", "web"), ("zone", "a")];
        check("", &web, true);
        check("app=web", &web, true);
        check("app==web,zone=b", &web, false);
        check("app != web", &web, false);
        check("tier!=test", &web, true);
        check("zone in (a, b),app", &web, true);
        check("zone notin (a,b)", &web, false);
        check("tier notin (a,b)", &web, true);
        check("!app", &web, false);
        check("!tier", &web, true);
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for text in ["=web", "app in a", "app in (a", "app of (a)", "a b", "!", "a(b)"] {
            text.parse::<Selector>().expect_err(text);
        }
    }
}
