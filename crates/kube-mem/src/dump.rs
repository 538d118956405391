//! Everything that a server holds, as a value that can be written to a file and read again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::ids::Ids;
use crate::store::ObjectRef;

/// The state of a server. What watches have seen is not part of it: a server that comes back starts new watches.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dump {
    /// Versions go on from here, so that no client mistakes a new state for one that it has seen.
    revision: u64,
    ids: Ids,
    /// Objects by collection and key.
    collections: BTreeMap<String, BTreeMap<String, Value>>,
}

pub(crate) fn take(cluster: &Cluster) -> Dump {
    let mut collections: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    for (name, collection) in cluster.store.collections() {
        let objects = collection
            .range("", None)
            .map(|(key, object)| (key.to_string(), object.value.clone()))
            .collect();
        collections.insert(name.to_string(), objects);
    }
    Dump {
        revision: cluster.store.revision(),
        ids: cluster.ids.clone(),
        collections,
    }
}

/// Fills an empty cluster. All objects are there before the first reaction looks at any of them, or dependents would
/// be collected for want of their owners.
pub(crate) fn restore(cluster: &mut Cluster, dump: Dump) {
    cluster.store.advance_to(dump.revision);
    cluster.ids = dump.ids;
    for (collection, objects) in dump.collections {
        for (key, value) in objects {
            let at = ObjectRef {
                collection: collection.as_str().into(),
                key: key.as_str().into(),
            };
            cluster.commit(&at, value);
        }
    }
    cluster.settle();
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{
        Api, ResourceExt,
        api::{ListParams, ObjectMeta, PostParams},
    };

    use crate::ApiServer;

    #[tokio::test]
    async fn a_server_that_comes_back_has_the_same_objects_and_later_versions() {
        let first = ApiServer::builder().seed(7).build();
        let maps: Api<ConfigMap> = Api::default_namespaced(first.client());
        let metadata = ObjectMeta {
            name: Some("kept".into()),
            ..ObjectMeta::default()
        };
        let map = ConfigMap {
            metadata,
            ..ConfigMap::default()
        };
        let created = maps.create(&PostParams::default(), &map).await.expect("it is accepted");
        let text = serde_json::to_string(&first.dump()).expect("a dump is plain data");

        let dump = serde_json::from_str(&text).expect("what was written can be read");
        let second = ApiServer::builder().restore(dump).build();
        let maps: Api<ConfigMap> = Api::default_namespaced(second.client());
        let found = maps.get("kept").await.expect("it is there");
        assert_eq!(found.uid(), created.uid());
        let list = maps.list(&ListParams::default()).await.expect("lists work");
        let version: u64 = list
            .metadata
            .resource_version
            .unwrap_or_default()
            .parse()
            .expect("a number");
        assert!(version > first.resource_version());
    }
}
