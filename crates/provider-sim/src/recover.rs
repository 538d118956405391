//! The cloud's memory after the process that simulated it has died.
//!
//! Against a real cluster the region lives inside the controller's process, so `kill -9` takes both. Nothing is lost
//! all the same, because every moment at which a machine matters to somebody has left an object behind:
//!
//! | the process died …                      | what is there          | what the next one does                         |
//! |-----------------------------------------|------------------------|------------------------------------------------|
//! | before the launch was answered          | a claim without id     | launches; nobody has seen the first machine    |
//! | after it, before the claim recorded it  | the same, maybe a Node | launches or finds the Node's machine: name and id follow from the claim |
//! | after that, before the node joined      | a claim with an id     | recovers a booting machine, which joins        |
//! | while the node was there                | a Node                 | recovers a running machine                     |
//! | after the end was asked for             | the claim's finalizer  | is asked again, by the claim's own controller  |
//!
//! A claim that had registered and has no Node any more has lost its machine: with simulated machines the Node is all
//! that there is. So it is for upstream's KWOK provider.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    kwok::KwokNodeClass,
    labels::{annotations, finalizers},
    v1::{NodeClaim, Quantities},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Taint as NodeTaint};
use kube::{Api, Client, ResourceExt, api::ListParams};
use model::{CapacityType, Labels, ProviderId, Resources, Taint, vocabulary};

use crate::{
    cloud::SimCloud,
    fate::after,
    machine::{Machine, NodeObject, OfferingKey, node_name},
    node::{FAKE, FAKE_NODE, PRICE_LABEL, TOKEN_ANNOTATION},
    node_class::delay_of,
};

/// How many machines were found again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    pub running: usize,
    pub booting: usize,
}

impl SimCloud {
    /// Takes over every machine that the cluster's objects speak of. To be called before the controllers start, and
    /// by each new leader before it acts: what a machine did under another leader is only known to the cluster.
    pub async fn recover(&self, client: &Client) -> Result<Recovered, kube::Error> {
        let everything = ListParams::default();
        let claims = Api::<NodeClaim>::all(client.clone()).list(&everything).await?.items;
        let nodes = Api::<Node>::all(client.clone()).list(&everything).await?.items;
        let classes = Api::<KwokNodeClass>::all(client.clone()).list(&everything).await?.items;
        let delays = classes
            .iter()
            .map(|class| (class.name_any(), delay_of(class)))
            .collect();

        let found = machines(self, &claims, &nodes, &delays);
        let mut recovered = Recovered::default();
        for machine in found {
            match machine.node_object {
                NodeObject::Created => recovered.running += 1,
                NodeObject::NotYet | NodeObject::Removed => recovered.booting += 1,
            }
            self.adopt(machine);
        }
        Ok(recovered)
    }
}

fn machines(
    cloud: &SimCloud,
    claims: &[NodeClaim],
    nodes: &[Node],
    delays: &BTreeMap<String, SignedDuration>,
) -> Vec<Machine> {
    let claim_of: BTreeMap<&str, &NodeClaim> = claims
        .iter()
        .filter_map(|claim| Some((id_of_claim(claim)?, claim)))
        .collect();
    let with_node: BTreeSet<&str> = nodes.iter().filter_map(id_of_node).collect();
    let running = nodes.iter().filter(|node| is_simulated(node) && !is_given_up(node));
    let running = running.filter_map(|node| {
        let id = id_of_node(node)?;
        Some(running_machine(id, node, claim_of.get(id).copied(), cloud))
    });
    let booting = claim_of
        .iter()
        .filter(|(id, claim)| !with_node.contains(*id) && is_booting(claim));
    let booting = booting.map(|(id, claim)| {
        let delay = delays.get(&claim.spec.node_class_ref.name).copied().unwrap_or_default();
        booting_machine(id, claim, delay, cloud)
    });
    running.chain(booting).collect()
}

fn id_of_claim(claim: &NodeClaim) -> Option<&str> {
    let id = claim.status.as_ref()?.provider_id.as_deref()?;
    node_name(id).map(|_| id)
}

fn id_of_node(node: &Node) -> Option<&str> {
    let id = node.spec.as_ref()?.provider_id.as_deref()?;
    node_name(id).map(|_| id)
}

fn is_simulated(node: &Node) -> bool {
    node.annotations().get(FAKE_NODE).is_some_and(|value| value == FAKE)
}

/// Its machine was gone before: only a stranger's finalizer keeps the object.
fn is_given_up(node: &Node) -> bool {
    node.metadata.deletion_timestamp.is_some() && !node.finalizers().iter().any(|name| name == finalizers::TERMINATION)
}

/// A claim that is on its way out without a node has nothing to wait for: its machine counts as gone.
fn is_booting(claim: &NodeClaim) -> bool {
    let conditions = claim
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let registered = conditions
        .filter(|condition| condition.type_ == "Registered")
        .any(|c| c.status == "True");
    !registered && claim.metadata.deletion_timestamp.is_none()
}

fn running_machine(id: &str, node: &Node, claim: Option<&NodeClaim>, cloud: &SimCloud) -> Machine {
    let status = node.status.as_ref();
    let created = node.creation_timestamp().map_or_else(|| cloud.now(), |time| time.0);
    // The node's own word first: a claim of the same name may be a later one. Upstream's nodes have none.
    let own = node.annotations().get(TOKEN_ANNOTATION).cloned();
    // A node with our mark bears its claim's name, also when the claim is gone.
    let name = own.as_ref().map(|_| node.name_any());
    let token = own.or_else(|| claim.and_then(ResourceExt::uid)).unwrap_or_default();
    let bare = bare_machine(id, pairs(node.labels()));
    Machine {
        reclaim: cloud.fate(&token).reclaim(created, bare.offering.capacity_type),
        token,
        claim: claim.map(ResourceExt::name_any).or(name).map(Into::into),
        annotations: pairs(node.annotations()),
        capacity: amounts(status.and_then(|status| status.capacity.as_ref())),
        allocatable: amounts(status.and_then(|status| status.allocatable.as_ref())),
        launched: created,
        boots: created,
        joins: Some(created),
        node_object: NodeObject::Created,
        ..bare
    }
}

fn booting_machine(id: &str, claim: &NodeClaim, delay: SignedDuration, cloud: &SimCloud) -> Machine {
    let status = claim.status.as_ref();
    let conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
    let launched = conditions
        .filter(|condition| condition.type_ == "Launched")
        .map(|c| c.last_transition_time.0)
        .next();
    let launched = launched.unwrap_or_else(|| cloud.now());
    let token = claim.uid().unwrap_or_default();
    let fate = cloud.fate(&token);
    let boots = after(launched, fate.boot);
    let mut annotations = pairs(claim.annotations());
    annotations.insert(FAKE_NODE.into(), FAKE.into());
    annotations.insert(TOKEN_ANNOTATION.into(), token.as_str().into());
    annotations.remove(self::annotations::TERMINATION_TIMESTAMP);
    let bare = bare_machine(id, pairs(claim.labels()));
    let spec = &claim.spec;
    let taints = spec.taints.iter().chain(&spec.startup_taints).flatten();
    Machine {
        token,
        claim: Some(claim.name_any().into()),
        annotations,
        taints: taints.filter_map(taint).collect(),
        capacity: amounts(status.and_then(|status| status.capacity.as_ref())),
        allocatable: amounts(status.and_then(|status| status.allocatable.as_ref())),
        launched,
        boots,
        joins: fate.joins.then(|| after(boots, delay)),
        reclaim: fate.reclaim(boots, bare.offering.capacity_type),
        ..bare
    }
}

/// What the labels alone tell of a machine.
fn bare_machine(id: &str, labels: Labels) -> Machine {
    let label = |key: &str| labels.get(key).map(ToString::to_string).unwrap_or_default();
    Machine {
        provider_id: ProviderId::from(id),
        node: node_name(id).unwrap_or(id).into(),
        token: String::new(),
        claim: None,
        pool: labels.get(vocabulary::NODEPOOL).map(|pool| pool.as_str().into()),
        offering: OfferingKey {
            instance_type: label(vocabulary::INSTANCE_TYPE).into(),
            zone: label(vocabulary::ZONE).into(),
            capacity_type: label(vocabulary::CAPACITY_TYPE)
                .parse()
                .unwrap_or(CapacityType::OnDemand),
        },
        price: label(PRICE_LABEL).parse().unwrap_or(0.0),
        labels,
        annotations: Labels::new(),
        taints: Vec::new(),
        capacity: Resources::new(),
        allocatable: Resources::new(),
        launched: Timestamp::MIN,
        boots: Timestamp::MIN,
        joins: None,
        ending: None,
        reclaim: None,
        node_object: NodeObject::NotYet,
    }
}

fn pairs(map: &BTreeMap<String, String>) -> Labels {
    map.iter().map(|(key, value)| (key.into(), value.into())).collect()
}

/// Amounts that nobody can read count as absent; the API server admits none.
fn amounts(listed: Option<&Quantities>) -> Resources {
    let amount = |(name, amount): (&String, &k8s_openapi::apimachinery::pkg::api::resource::Quantity)| {
        Some((name.as_str().into(), amount.0.parse().ok()?))
    };
    listed.into_iter().flatten().filter_map(amount).collect()
}

fn taint(taint: &NodeTaint) -> Option<Taint> {
    let effect = taint.effect.parse().ok()?;
    Some(Taint::new(
        taint.key.as_str(),
        taint.value.clone().unwrap_or_default(),
        effect,
    ))
}
