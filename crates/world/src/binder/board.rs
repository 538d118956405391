//! The nodes of one pass, with the pods that are on them and what is left.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{Node, Pod};
use model::{Labels, NodeFacts, Resources, pod::HostPort};

use crate::{kubelet::collector::is_terminal, mirror::Mirror};

/// A pod that looks for a place, or has one.
#[derive(Clone)]
pub struct Entrant {
    pub raw: Arc<Pod>,
    pub pod: Arc<model::Pod>,
    /// Equal for pods that the rules cannot tell apart.
    pub alike: Arc<str>,
}

impl Entrant {
    pub fn of(raw: Arc<Pod>) -> Self {
        let pod = api::convert::pod(&raw).value;
        let affinity = raw.spec.as_ref().map(|spec| &spec.affinity);
        let alike = format!("{:?}\n{:?}\n{affinity:?}", raw.metadata.namespace, pod.shape).into();
        Self {
            raw,
            pod: Arc::new(pod),
            alike,
        }
    }

    pub fn namespace(&self) -> &str {
        self.raw.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub fn labels(&self) -> &Labels {
        &self.pod.shape.labels
    }
}

/// One node.
pub struct Spot {
    pub node: Arc<Node>,
    pub facts: NodeFacts,
    pub free: Resources,
    pub ports: Vec<HostPort>,
    pub pods: Vec<Entrant>,
}

impl Spot {
    pub fn label(&self, key: &str) -> Option<&str> {
        self.facts.labels.get(key).map(model::LabelValue::as_str)
    }
}

pub struct Board {
    /// In the order of their names.
    pub spots: Vec<Spot>,
    /// The labels of all namespaces.
    pub namespaces: BTreeMap<String, Labels>,
    by_name: BTreeMap<String, usize>,
}

impl Board {
    pub fn of(mirror: &Mirror) -> Self {
        let spots: Vec<Spot> = mirror
            .nodes
            .all()
            .into_iter()
            .map(|node| {
                let facts = api::convert::node(&node).value;
                let free = facts.allocatable.clone();
                Spot {
                    node,
                    facts,
                    free,
                    ports: Vec::new(),
                    pods: Vec::new(),
                }
            })
            .collect();
        let by_name = spots
            .iter()
            .enumerate()
            .map(|(at, spot)| (spot.facts.name.to_string(), at))
            .collect();
        let labels = |namespace: &k8s_openapi::api::core::v1::Namespace| {
            let labels = namespace.metadata.labels.iter().flatten();
            let labels = labels
                .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
                .collect();
            (namespace.metadata.name.clone().unwrap_or_default(), labels)
        };
        let namespaces = mirror
            .namespaces
            .all()
            .iter()
            .map(|namespace| labels(namespace))
            .collect();
        Self {
            spots,
            namespaces,
            by_name,
        }
    }

    pub fn node_name(&self, spot: usize) -> &str {
        self.spots[spot].facts.name.as_str()
    }

    /// Counts a pod where it is. Pods of unknown nodes and pods that have ended take nothing.
    pub fn put(&mut self, node: &str, entrant: &Entrant) {
        if let Some(spot) = self.by_name.get(node).copied()
            && !is_terminal(&entrant.raw)
        {
            self.place(spot, entrant);
        }
    }

    pub fn place(&mut self, spot: usize, entrant: &Entrant) {
        let spot = &mut self.spots[spot];
        spot.free.sub_assign(&entrant.pod.shape.requests);
        spot.ports.extend(entrant.pod.shape.host_ports.iter().cloned());
        spot.pods.push(entrant.clone());
    }
}
