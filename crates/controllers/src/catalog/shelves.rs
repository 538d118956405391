//! What can be launched: the provider's word, with overlays in force where they are enabled.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{convert, joined, v1alpha1::NodeOverlay, validate};
use imbl::OrdMap;
use kube::ResourceExt;
use model::{
    Labels, PoolName, Vocabulary,
    overlay::{self, Overlaid, Overlay},
    snapshot::Catalog,
};
use parking_lot::Mutex;
use state::{Index, View};

/// What becomes of an overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    InForce,
    /// It means nothing by itself.
    Invalid(String),
    /// It contradicts another one.
    Conflict,
}

/// By the name of the overlay.
pub type Verdicts = BTreeMap<Arc<str>, Verdict>;

/// The provider's catalogs, from which those of the index are made.
///
/// Until a pool has been evaluated it has no catalog in the index, and nothing is launched from it.
#[derive(Default)]
pub struct Shelves {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    provided: OrdMap<PoolName, Catalog>,
    evaluated: Option<Evaluated>,
}

/// An evaluation, and what it was made from.
struct Evaluated {
    provided: OrdMap<PoolName, Catalog>,
    overlays: Vec<Overlay>,
    labels: BTreeMap<PoolName, Labels>,
    catalogs: OrdMap<PoolName, Catalog>,
    verdicts: Verdicts,
}

impl Shelves {
    /// What the provider says of a pool; `None` when it has nothing to say.
    pub fn put(&self, pool: &PoolName, catalog: Option<Catalog>) {
        let provided = &mut self.state.lock().provided;
        match catalog {
            Some(catalog) => provided.insert(pool.clone(), catalog),
            None => provided.remove(pool),
        };
    }

    /// Applies the overlays to all catalogs and puts what has changed into the index.
    pub fn evaluate(&self, index: &Index) -> Verdicts {
        let mut state = self.state.lock();
        let view = index.view();
        let pools = &view.snapshot.pools;
        let State { provided, evaluated } = &mut *state;
        let gone: Vec<_> = provided
            .keys()
            .filter(|name| !pools.contains_key(*name))
            .cloned()
            .collect();
        for name in gone {
            provided.remove(&name);
        }
        let (overlays, invalid) = readable(&view);
        let labels = pools
            .iter()
            .map(|(name, pool)| (name.clone(), pool.template.labels.clone()))
            .collect();
        let is_current = |last: &Evaluated| {
            last.overlays == overlays && last.labels == labels && same_catalogs(&last.provided, provided)
        };
        if !evaluated.as_ref().is_some_and(is_current) {
            let overlaid = overlaid(&view, provided, &overlays);
            let verdict = |overlay: &Overlay| match overlaid.conflicts.contains(&overlay.name) {
                true => Verdict::Conflict,
                false => Verdict::InForce,
            };
            let verdicts = overlays.iter().map(|overlay| (overlay.name.clone(), verdict(overlay)));
            *evaluated = Some(Evaluated {
                verdicts: verdicts.collect(),
                catalogs: overlaid.catalogs,
                provided: provided.clone(),
                overlays,
                labels,
            });
        }
        let Some(last) = evaluated else { return invalid };
        publish(index, &view, &last.catalogs);
        let valid = last
            .verdicts
            .iter()
            .map(|(name, verdict)| (name.clone(), verdict.clone()));
        invalid.into_iter().chain(valid).collect()
    }
}

fn overlaid(view: &View, provided: &OrdMap<PoolName, Catalog>, overlays: &[Overlay]) -> Overlaid {
    if overlays.is_empty() {
        return Overlaid {
            catalogs: provided.clone(),
            conflicts: BTreeSet::new(),
        };
    }
    overlay::apply(provided, &view.snapshot.pools, overlays, &view.snapshot.vocabulary)
}

/// The overlays that mean something, and why the others do not.
fn readable(view: &View) -> (Vec<Overlay>, Verdicts) {
    let mut overlays = Vec::new();
    let mut invalid = Verdicts::new();
    for overlay in view.overlays.values() {
        match read(overlay, &view.snapshot.vocabulary) {
            Ok(overlay) => overlays.push(overlay),
            Err(message) => {
                invalid.insert(overlay.name_any().into(), Verdict::Invalid(message));
            }
        }
    }
    (overlays, invalid)
}

fn read(overlay: &NodeOverlay, vocabulary: &Vocabulary) -> Result<Overlay, String> {
    let mut parsed = convert::overlay(overlay);
    parsed.errors.extend(validate::node_overlay(overlay, vocabulary));
    parsed.strict().map_err(|errors| joined(&errors))
}

fn same_catalogs(one: &OrdMap<PoolName, Catalog>, other: &OrdMap<PoolName, Catalog>) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .all(|(name, catalog)| other.get(name).is_some_and(|other| Arc::ptr_eq(catalog, other)))
}

fn publish(index: &Index, view: &View, catalogs: &OrdMap<PoolName, Catalog>) {
    for (name, catalog) in catalogs {
        let known = view.snapshot.catalogs.get(name);
        if known.is_none_or(|known| !Arc::ptr_eq(known, catalog)) {
            index.put_catalog(name, Some(catalog.clone()));
        }
    }
    for name in view
        .snapshot
        .catalogs
        .keys()
        .filter(|name| !catalogs.contains_key(*name))
    {
        index.put_catalog(name, None);
    }
}

#[cfg(test)]
mod tests {
    use api::v1::NodePool;
    use model::{CapacityType, InstanceType, Requirement, Requirements, Resources, samples, vocabulary};
    use serde_json::{Value, json};
    use state::Served;

    use super::*;

    fn index(pools: &[&str]) -> Index {
        let served = Served::new([("g".to_owned(), "K".to_owned())]);
        let index = Index::new(Arc::default(), served);
        for name in pools {
            let pool: NodePool = serde_json::from_value(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
                "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
                "spec": {"template": {"spec": {
                    "requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "d"},
                }}},
            }))
            .expect("the literal is a pool");
            index.apply(pool);
        }
        index
    }

    fn catalog() -> Catalog {
        let requirements: Requirements = [Requirement::one_of(vocabulary::INSTANCE_TYPE, ["m"])]
            .into_iter()
            .collect();
        let offerings = vec![samples::offering(CapacityType::Spot, "a", 1.0)];
        let capacity = Resources::default();
        [Arc::new(InstanceType::new(
            "m".into(),
            requirements,
            offerings,
            capacity,
            Default::default(),
        ))]
        .into()
    }

    fn put_overlay(index: &Index, name: &str, version: u64, spec: Value) {
        let overlay: NodeOverlay = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay",
            "metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()}, "spec": spec,
        }))
        .expect("the literal is an overlay");
        index.apply(overlay);
    }

    fn price(index: &Index, pool: &str) -> Option<f64> {
        let view = index.view();
        let catalog = view.snapshot.catalogs.get(&PoolName::from(pool))?;
        Some(catalog[0].offerings[0].price)
    }

    /// LC-O1, LC-O11: nothing is launched from a pool that has not been evaluated.
    #[test]
    fn a_pool_has_a_catalog_once_it_is_evaluated() {
        let index = index(&["p"]);
        let shelves = Shelves::default();
        assert_eq!(price(&index, "p"), None);
        let provided = catalog();
        shelves.put(&"p".into(), Some(provided.clone()));
        assert!(shelves.evaluate(&index).is_empty());
        let view = index.view();
        assert!(
            Arc::ptr_eq(&view.snapshot.catalogs[&PoolName::from("p")], &provided),
            "nothing is copied"
        );
        put_overlay(&index, "dear", 2, json!({"requirements": [], "price": "7"}));
        assert_eq!(shelves.evaluate(&index)["dear"], Verdict::InForce);
        assert_eq!(price(&index, "p"), Some(7.0));
        shelves.put(&"p".into(), None);
        shelves.evaluate(&index);
        assert_eq!(price(&index, "p"), None);
    }

    /// LC-O2.
    #[test]
    fn an_overlay_that_means_nothing_is_not_applied() {
        let index = index(&["p"]);
        let shelves = Shelves::default();
        shelves.put(&"p".into(), Some(catalog()));
        let requirement = json!([{"key": "karpenter.sh/registered", "operator": "In", "values": ["true"]}]);
        put_overlay(
            &index,
            "restricted",
            2,
            json!({"requirements": requirement, "price": "7"}),
        );
        put_overlay(
            &index,
            "cpu",
            3,
            json!({"requirements": [], "price": "8", "capacity": {"cpu": "9"}}),
        );
        let verdicts = shelves.evaluate(&index);
        assert!(matches!(&verdicts["restricted"], Verdict::Invalid(_)));
        assert!(matches!(&verdicts["cpu"], Verdict::Invalid(message) if message.contains("cpu")));
        assert_eq!(price(&index, "p"), Some(1.0));
    }

    /// LC-O12: one pool without an answer does not keep the others; LC-M2: a new overlay is a new price.
    #[test]
    fn pools_are_evaluated_with_what_is_known() {
        let index = index(&["p", "q"]);
        let shelves = Shelves::default();
        put_overlay(&index, "dear", 2, json!({"requirements": [], "price": "7"}));
        shelves.put(&"p".into(), Some(catalog()));
        shelves.evaluate(&index);
        assert_eq!((price(&index, "p"), price(&index, "q")), (Some(7.0), None));
        shelves.put(&"q".into(), Some(catalog()));
        shelves.evaluate(&index);
        assert_eq!(price(&index, "q"), Some(7.0));
        put_overlay(&index, "dear", 3, json!({"requirements": [], "price": "9"}));
        shelves.evaluate(&index);
        assert_eq!((price(&index, "p"), price(&index, "q")), (Some(9.0), Some(9.0)));
    }

    /// LC-O3, LC-O9.
    #[test]
    fn a_contradiction_is_told_and_applied_nowhere() {
        let index = index(&["p", "q"]);
        let shelves = Shelves::default();
        shelves.put(&"p".into(), Some(catalog()));
        shelves.put(&"q".into(), Some(catalog()));
        put_overlay(&index, "a", 2, json!({"requirements": [], "price": "7"}));
        let only_p = json!([{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["p"]}]);
        put_overlay(&index, "b", 3, json!({"requirements": only_p, "price": "7"}));
        let verdicts = shelves.evaluate(&index);
        assert_eq!(
            (&verdicts["b"], &verdicts["a"]),
            (&Verdict::InForce, &Verdict::Conflict)
        );
        assert_eq!((price(&index, "p"), price(&index, "q")), (Some(7.0), Some(1.0)));
    }
}
