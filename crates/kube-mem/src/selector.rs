//! Label and field selectors: which objects a list, a watch or a collection delete is about.

mod field;
mod label;

pub(crate) use field::FieldSelector;
pub use label::LabelSelector;

use serde_json::Value;

/// Both selectors of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
}

impl Selector {
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.labels.matches(&object["metadata"]["labels"]) && self.fields.matches(object)
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }
}
