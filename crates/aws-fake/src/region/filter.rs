//! Filters of the Describe calls: all of them must hold, and of each one value suffices.

use super::Tags;
use crate::{glob, refusal::Refusal};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    pub name: String,
    pub values: Vec<String>,
}

/// What can be listed with filters.
pub trait Filtered {
    fn tags(&self) -> &Tags;

    /// The values under the name of a filter. `None` where this kind of resource has no such filter.
    fn field(&self, name: &str) -> Option<Vec<String>>;
}

/// Whether all filters admit the item.
///
/// # Errors
///
/// A filter that AWS has not, or that is not known here: to ignore it would answer another question.
pub fn admit(item: &impl Filtered, filters: &[Filter]) -> Result<bool, Refusal> {
    for filter in filters {
        let unknown = || Refusal::bad_value(format!("The filter '{}' is invalid", filter.name));
        let values = if let Some(key) = filter.name.strip_prefix("tag:") {
            item.tags().get(key).cloned().into_iter().collect()
        } else if filter.name == "tag-key" {
            item.tags().keys().cloned().collect()
        } else {
            item.field(&filter.name).ok_or_else(unknown)?
        };
        let fits = |value: &String| filter.values.iter().any(|pattern| glob::fits(pattern, value));
        if !values.iter().any(fits) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The items that all filters admit.
pub fn admitted<'a, T: Filtered>(
    items: impl IntoIterator<Item = &'a T>,
    filters: &[Filter],
) -> Result<Vec<&'a T>, Refusal> {
    let mut found = Vec::new();
    for item in items {
        if admit(item, filters)? {
            found.push(item);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing(Tags);

    impl Filtered for Thing {
        fn tags(&self) -> &Tags {
            &self.0
        }

        fn field(&self, name: &str) -> Option<Vec<String>> {
            (name == "colour").then(|| vec!["red".to_owned()])
        }
    }

    #[test]
    fn every_filter_must_hold_and_one_value_of_each() {
        let thing = Thing(Tags::from([("team".to_owned(), "web".to_owned())]));
        type Words = &'static [(&'static str, &'static [&'static str])];
        let table: [(Words, bool); 7] = [
            (&[], true),
            (&[("tag:team", &["api", "web"])], true),
            (&[("tag:team", &["w*"])], true),
            (&[("tag-key", &["team"])], true),
            (&[("tag-key", &["owner"])], false),
            (&[("tag:team", &["web"]), ("colour", &["blue"])], false),
            (&[("tag:owner", &["*"])], false),
        ];
        for (filters, expected) in table {
            let filters: Vec<Filter> = filters
                .iter()
                .map(|(name, values)| Filter {
                    name: (*name).to_owned(),
                    values: values.iter().map(|value| (*value).to_owned()).collect(),
                })
                .collect();
            assert_eq!(admit(&thing, &filters), Ok(expected), "{filters:?}");
        }
    }

    #[test]
    fn a_filter_that_is_not_known_is_refused() {
        let filter = Filter {
            name: "taste".to_owned(),
            values: vec!["sweet".to_owned()],
        };
        let refused = admit(&Thing(Tags::new()), &[filter]).expect_err("no such filter");
        assert_eq!(refused.code, "InvalidParameterValue");
    }
}
