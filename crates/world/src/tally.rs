//! How often the controller wrote what.

use std::collections::BTreeMap;

use crate::history::Deed;

/// Counts requests that changed something, by what they did to which kind: `PATCH nodeclaims/status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<String, usize>);

impl Tally {
    pub fn count(&mut self, deed: &Deed) {
        if let Deed::Request { method, path, code, .. } = deed {
            let refused = if *code < 300 { "" } else { " refused" };
            *self.0.entry(format!("{method} {}{refused}", kind(path))).or_default() += 1;
        }
    }

    /// How often one thing was done.
    pub fn of(&self, what: &str) -> usize {
        self.0.get(what).copied().unwrap_or_default()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(what, count)| (what.as_str(), *count))
    }

    /// What was counted since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &Tally) -> Tally {
        let news = self
            .iter()
            .map(|(what, count)| (what.to_owned(), count - earlier.of(what)));
        Tally(news.filter(|(_, count)| *count > 0).collect())
    }
}

/// The kind and the subresource of a path, without names.
fn kind(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let rest = match parts[..] {
        ["api", _, ref rest @ ..] | ["apis", _, _, ref rest @ ..] => rest,
        ref other => other,
    };
    let rest = match rest {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    match rest {
        [kind, _, subresource] => format!("{kind}/{subresource}"),
        [kind, ..] => (*kind).to_owned(),
        [] => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_kind_and_subresource() {
        let kinds = [
            "/api/v1/nodes/a",
            "/apis/karpenter.sh/v1/nodeclaims",
            "/apis/karpenter.sh/v1/nodeclaims/a/status",
            "/api/v1/namespaces/default/pods/p/eviction",
            "/api/v1/namespaces/default/events",
            "/api/v1/namespaces/default",
        ]
        .map(kind);
        assert_eq!(
            kinds,
            [
                "nodes",
                "nodeclaims",
                "nodeclaims/status",
                "pods/eviction",
                "events",
                "namespaces"
            ]
        );
    }
}
