//! A planned launch, or another machine of a static pool, as the object that asks for it.

use std::collections::BTreeMap;

use api::{
    convert,
    hash::NODE_POOL_VERSION,
    labels::{self, annotations},
    v1::{NodeClaim, NodeClaimResources, NodeClaimSpec, NodePool},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use model::{Labels, Pool, Requirements, Snapshot, Vocabulary, instance_type::Overlays};
use scheduler::Launch;

use super::names;

/// Keys that the solver uses for itself, that every node settles anew, or that no claim may ask for.
const NEVER_WRITTEN: [&str; 4] = [
    labels::HOSTNAME,
    labels::REGISTERED,
    labels::INITIALIZED,
    labels::PROVISIONER_NAME,
];

/// The claim for a launch, still without a name. The hash is that of the template it was planned from, even if the pool
/// has changed since.
pub fn of_launch(launch: &Launch, planned: &Pool, pool: &NodePool, overlays: Overlays) -> NodeClaim {
    let mut claim = of_pool(planned, pool, &launch.requirements, &launch.labels);
    claim.spec.resources = Some(NodeClaimResources {
        requests: Some(convert::resources_text(&launch.requests)),
    });
    let notes = claim.metadata.annotations.get_or_insert_default();
    notes.insert(
        annotations::MIN_VALUES_RELAXED.to_owned(),
        launch.min_values_relaxed.to_string(),
    );
    if !launch.device_drivers.is_empty() {
        let drivers: Vec<&str> = launch.device_drivers.iter().map(AsRef::as_ref).collect();
        notes.insert(annotations::REQUESTED_DRA_DRIVERS.to_owned(), drivers.join(","));
    }
    let applied = [
        (overlays.price, annotations::PRICE_OVERLAY_APPLIED),
        (overlays.capacity, annotations::CAPACITY_OVERLAY_APPLIED),
    ];
    for (_, note) in applied.into_iter().filter(|(is_applied, _)| *is_applied) {
        notes.insert(note.to_owned(), "true".to_owned());
    }
    claim
}

/// A claim of a static pool: all that the template admits, and the provider chooses.
pub fn of_template(planned: &Pool, pool: &NodePool, vocabulary: &Vocabulary) -> NodeClaim {
    let requirements = &planned.template.requirements;
    let mut claim = of_pool(
        planned,
        pool,
        requirements,
        &planned.claim_labels(requirements, vocabulary),
    );
    let notes = claim.metadata.annotations.get_or_insert_default();
    notes.insert(annotations::MIN_VALUES_RELAXED.to_owned(), false.to_string());
    claim
}

/// What overlays have changed of the shapes that a launch lists.
pub fn overlays(launch: &Launch, snapshot: &Snapshot) -> Overlays {
    let catalog = snapshot.catalogs.get(&launch.pool);
    let changed = catalog.iter().flat_map(|catalog| catalog.iter());
    let changed = changed.filter(|shape| shape.overlays.any());
    let listed = changed.filter(|shape| launch.instance_types.contains(&shape.name));
    listed.fold(Overlays::default(), |all, shape| Overlays {
        price: all.price || shape.overlays.price,
        capacity: all.capacity || shape.overlays.capacity,
    })
}

fn of_pool(planned: &Pool, pool: &NodePool, requirements: &Requirements, wanted: &Labels) -> NodeClaim {
    let template = &pool.spec.template;
    let class = &template.spec.node_class_ref;
    let mut claim = NodeClaim::new(
        "",
        NodeClaimSpec {
            taints: template.spec.taints.clone(),
            startup_taints: template.spec.startup_taints.clone(),
            requirements: convert::to_requirements(&written(requirements)),
            resources: None,
            node_class_ref: class.clone(),
            termination_grace_period: template.spec.termination_grace_period.clone(),
            expire_after: template.spec.expire_after.clone(),
        },
    );
    let meta = &mut claim.metadata;
    meta.name = None;
    meta.generate_name = Some(names::generate_name(&pool.name_any()));

    let wanted = wanted.iter().map(|(key, value)| (key.to_string(), value.to_string()));
    let mut wanted: BTreeMap<String, String> = wanted.collect();
    wanted.insert(labels::NODE_POOL.to_owned(), pool.name_any());
    wanted.insert(
        format!("{}/{}", class.group, class.kind.to_lowercase()),
        class.name.clone(),
    );
    meta.labels = Some(wanted);

    let mut notes = template
        .metadata
        .as_ref()
        .and_then(|meta| meta.annotations.clone())
        .unwrap_or_default();
    notes.insert(annotations::NODE_POOL_HASH.to_owned(), planned.hash.clone());
    notes.insert(
        annotations::NODE_POOL_HASH_VERSION.to_owned(),
        NODE_POOL_VERSION.to_owned(),
    );
    meta.annotations = Some(notes);

    // From the start rather than with a write of its own before the launch.
    meta.finalizers = Some(vec![labels::finalizers::TERMINATION.to_owned()]);
    meta.owner_references = Some(vec![OwnerReference {
        api_version: NodePool::api_version(&()).into_owned(),
        kind: NodePool::kind(&()).into_owned(),
        name: pool.name_any(),
        uid: pool.uid().unwrap_or_default(),
        block_owner_deletion: Some(true),
        controller: None,
    }]);
    claim
}

fn written(requirements: &Requirements) -> Requirements {
    let mut written = requirements.clone();
    for key in NEVER_WRITTEN {
        written.remove(key);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use model::{CapacityType, InstanceTypeName, Requirement, Resources, samples, vocabulary};
    use scheduler::Choice;
    use serde_json::json;

    use super::*;

    /// api.md 5.3; SC15.1.10 (the hash of what was planned), SC15.3.21 (annotations), SC15.19.4 (the pool's grace period or
    /// none: nothing sets a default for all pools).
    #[test]
    fn a_claim_has_the_shape_that_upstream_gives_it_and_its_finalizer() {
        let mut pool: NodePool = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general", "uid": "pool-uid"},
            "spec": {"template": {
                "metadata": {"labels": {"team": "blue"}, "annotations": {"note": "kept", "karpenter.sh/do-not-disrupt": "true"}},
                "spec": {
                    "requirements": [], "nodeClassRef": {"group": "g.io", "kind": "Klass", "name": "default"},
                    "taints": [{"key": "t", "effect": "NoSchedule"}], "expireAfter": "720h", "terminationGracePeriod": "5m",
                },
            }},
        }))
        .expect("the literal is a pool");
        let launch = Launch {
            pool: "general".into(),
            requirements: Arc::new(
                [
                    Requirement::one_of(vocabulary::INSTANCE_TYPE, ["m5.large"]),
                    Requirement::one_of(vocabulary::HOSTNAME, ["placeholder"]),
                ]
                .into_iter()
                .collect(),
            ),
            instance_types: [InstanceTypeName::from("m5.large")].into(),
            requests: Resources::default().with("cpu".into(), model::Quantity::from_int(2)),
            pods: Vec::new(),
            labels: Arc::new([("team".into(), "blue".into()), ("rack".into(), "7".into())].into()),
            choice: Choice {
                instance_type: "m5.large".into(),
                zone: "a".into(),
                capacity_type: CapacityType::Spot,
                price: 1.0,
            },
            min_values_relaxed: false,
            device_drivers: BTreeSet::from(["gpu.example.com".into()]),
        };
        let planned = Pool {
            hash: "123".to_owned(),
            ..samples::pool("general")
        };
        let overlays = Overlays {
            price: true,
            capacity: false,
        };
        let claim = serde_json::to_value(of_launch(&launch, &planned, &pool, overlays)).expect("plain data");
        let expected = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {
                "generateName": "general-",
                "labels": {"team": "blue", "rack": "7", "karpenter.sh/nodepool": "general", "g.io/klass": "default"},
                "annotations": {
                    "note": "kept", "karpenter.sh/do-not-disrupt": "true", "karpenter.sh/nodepool-hash": "123", "karpenter.sh/nodepool-hash-version": NODE_POOL_VERSION,
                    "karpenter.sh/nodeclaim-min-values-relaxed": "false",
                    "karpenter.sh/requested-dra-drivers": "gpu.example.com",
                    "karpenter.sh/price-overlay-applied": "true",
                },
                "finalizers": ["karpenter.sh/termination"],
                "ownerReferences": [{
                    "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "general", "uid": "pool-uid",
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "taints": [{"key": "t", "effect": "NoSchedule"}],
                "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]}],
                "resources": {"requests": {"cpu": "2"}},
                "nodeClassRef": {"group": "g.io", "kind": "Klass", "name": "default"},
                "terminationGracePeriod": "5m", "expireAfter": "720h",
            },
        });
        assert_eq!(claim, expected);

        pool.spec.template.spec.termination_grace_period = None;
        let claim = of_launch(&launch, &planned, &pool, overlays);
        assert_eq!(claim.spec.termination_grace_period, None);
    }
}
