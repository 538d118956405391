//! Affinity and anti-affinity between pods, as far as they are required.

use std::collections::BTreeSet;

use model::pod::PodTerm;

use super::{
    board::{Board, Entrant, Spot},
    spread::holds,
};

/// The domains that one pod is drawn to and those it has to keep away from, found once for all nodes.
pub struct Neighbours<'a> {
    /// Per required term: its topology key and the domains with a fitting neighbour.
    wanted: Vec<(&'a str, BTreeSet<&'a str>)>,
    /// The first pod of a group that only wants its own kind may go anywhere.
    first_of_its_kind: bool,
    /// Pairs of topology key and domain.
    shunned: BTreeSet<(&'a str, &'a str)>,
    /// Pairs that other pods keep free of pods like this one.
    forbidden: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Neighbours<'a> {
    pub fn of(board: &'a Board, entrant: &'a Entrant) -> Self {
        let affinity = &entrant.pod.shape.affinity;
        let fits_all = |other: &Entrant| {
            affinity
                .required_pods
                .iter()
                .all(|term| matches(board, term, entrant, other))
        };
        let wanted: Vec<(&str, BTreeSet<&str>)> = affinity
            .required_pods
            .iter()
            .map(|term| {
                let spots = board.spots.iter().filter(|spot| spot.pods.iter().any(fits_all));
                (
                    term.topology_key.as_str(),
                    spots.filter_map(|spot| spot.label(&term.topology_key)).collect(),
                )
            })
            .collect();
        let nobody = wanted.iter().all(|(_, domains)| domains.is_empty());
        let mut shunned = BTreeSet::new();
        let mut forbidden = BTreeSet::new();
        for spot in &board.spots {
            for other in &spot.pods {
                for term in affinity
                    .required_anti
                    .iter()
                    .filter(|term| matches(board, term, entrant, other))
                {
                    shunned.extend(
                        spot.label(&term.topology_key)
                            .map(|domain| (term.topology_key.as_str(), domain)),
                    );
                }
                let theirs = other.pod.shape.affinity.required_anti.iter();
                for term in theirs.filter(|term| matches(board, term, other, entrant)) {
                    forbidden.extend(
                        spot.label(&term.topology_key)
                            .map(|domain| (term.topology_key.as_str(), domain)),
                    );
                }
            }
        }
        Self {
            first_of_its_kind: nobody && fits_all(entrant),
            wanted,
            shunned,
            forbidden,
        }
    }

    pub fn refuses(&self, spot: &Spot) -> Option<Vec<String>> {
        let met = self.wanted.iter().all(|(key, domains)| {
            spot.label(key)
                .is_some_and(|domain| self.first_of_its_kind || domains.contains(domain))
        });
        let touches =
            |pairs: &BTreeSet<(&str, &str)>| pairs.iter().any(|(key, domain)| spot.label(key) == Some(domain));
        let reason = if !met {
            "node(s) didn't match pod affinity rules"
        } else if touches(&self.shunned) {
            "node(s) didn't match pod anti-affinity rules"
        } else if touches(&self.forbidden) {
            "node(s) didn't satisfy existing pods anti-affinity rules"
        } else {
            return None;
        };
        Some(vec![reason.into()])
    }
}

/// Whether a term of `holder` speaks of `other`.
pub(super) fn matches(board: &Board, term: &PodTerm, holder: &Entrant, other: &Entrant) -> bool {
    let Some(selector) = &term.selector else { return false };
    let own = term.namespaces.is_empty() && term.namespace_selector.is_none();
    let by_selector = term.namespace_selector.as_ref().is_some_and(|selector| {
        board
            .namespaces
            .get(other.namespace())
            .is_some_and(|labels| selector.matches(labels))
    });
    let in_reach =
        (own && holder.namespace() == other.namespace()) || term.namespaces.contains(other.namespace()) || by_selector;
    let value = |pod: &Entrant, key: &str| pod.labels().get(key).cloned();
    let same = |key: &String| value(holder, key).is_none_or(|ours| value(other, key) == Some(ours));
    let different = |key: &String| value(holder, key).is_none_or(|ours| value(other, key) != Some(ours));
    in_reach
        && holds(&selector.requirements, other)
        && term.match_label_keys.iter().all(same)
        && term.mismatch_label_keys.iter().all(different)
}
