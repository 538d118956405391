//! Label selectors, as the workload kinds write them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

type Labels = BTreeMap<String, String>;

/// Whether the selector picks an object with these labels. The empty selector picks everything.
pub fn selects(selector: &LabelSelector, labels: Option<&Labels>) -> bool {
    let value = |key: &str| labels.and_then(|labels| labels.get(key));
    let equal = selector
        .match_labels
        .iter()
        .flatten()
        .all(|(key, wanted)| value(key) == Some(wanted));
    equal
        && selector.match_expressions.iter().flatten().all(|expression| {
            let listed = |value: &String| expression.values.iter().flatten().any(|other| other == value);
            match (expression.operator.as_str(), value(&expression.key)) {
                ("In", Some(value)) => listed(value),
                ("NotIn", Some(value)) => !listed(value),
                ("Exists", found) => found.is_some(),
                ("NotIn" | "DoesNotExist", None) => true,
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

    #[test]
    fn expressions_read_as_in_kubernetes() {
        let labels: Labels = [("app".to_owned(), "web".to_owned())].into();
        for (key, operator, values, expected) in [
            ("app", "In", &["web", "db"][..], true),
            ("app", "In", &["db"], false),
            ("app", "NotIn", &["db"], true),
            ("tier", "NotIn", &["db"], true),
            ("tier", "In", &["db"], false),
            ("app", "Exists", &[], true),
            ("tier", "Exists", &[], false),
            ("tier", "DoesNotExist", &[], true),
            ("app", "DoesNotExist", &[], false),
        ] {
            let expression = LabelSelectorRequirement {
                key: key.into(),
                operator: operator.into(),
                values: Some(values.iter().map(|value| (*value).into()).collect()),
            };
            let selector = LabelSelector {
                match_expressions: Some(vec![expression]),
                match_labels: None,
            };
            assert_eq!(
                selects(&selector, Some(&labels)),
                expected,
                "{key} {operator} {values:?}"
            );
        }
        assert!(selects(&LabelSelector::default(), None));
    }
}
