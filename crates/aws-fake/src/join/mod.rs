//! Booted instances become nodes of a cluster, and terminated ones leave it.
//!
//! [`run`] plays the kubelet's registration (with what [`crate::user_data`] read), its heartbeat, and the cloud's node
//! controller, which removes the nodes of instances that are gone. What happens on a node afterwards, readiness and pods, is
//! the world's kubelet's part: [`kubelets`] starts it for clusters that have none, [`Instances`] tells it which machines run.

mod cluster;
mod kubelets;
mod node;

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::Node,
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::json;
use tracing::{info, warn};

pub use self::{
    cluster::{ConnectError, connect},
    kubelets::{Instances, kubelets},
};
use crate::{
    Fake,
    region::{
        Region,
        instances::{Instance, Joined, State},
    },
    user_data::{self, Family, UserDataError},
};

/// Instances change by themselves, so somebody has to look.
const PAUSE: Duration = Duration::from_millis(250);
/// As often as kubelets say that they live; clusters give them up after forty seconds.
const HEARTBEAT: SignedDuration = SignedDuration::from_secs(10);
const LEASES: &str = "kube-node-lease";

/// Looks after the nodes for as long as it is polled.
pub async fn run(fake: Fake, client: Client) {
    let nodes: Api<Node> = Api::all(client.clone());
    let leases: Api<Lease> = Api::namespaced(client, LEASES);
    let mut last_heartbeat = Timestamp::MIN;
    loop {
        for id in due(&fake) {
            join(&fake, &nodes, &id).await;
        }
        for (id, name) in gone(&fake) {
            leave(&fake, &nodes, &id, &name).await;
        }
        let now = fake.now();
        if last_heartbeat + HEARTBEAT <= now {
            last_heartbeat = now;
            for name in alive(&fake) {
                heartbeat(&leases, &name, now).await;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Instances whose kubelet would register now.
fn due(fake: &Fake) -> Vec<String> {
    fake.with(|state, now| {
        let wait = state.region.timing.join;
        let ready = |instance: &&Instance| {
            let running = instance.state(now) == State::Running && instance.running_at + wait <= now;
            running && instance.joined == Joined::NotYet
        };
        let instances = state.region.instances.values();
        instances.filter(ready).map(|instance| instance.id.clone()).collect()
    })
}

/// Nodes whose instances are no more.
fn gone(fake: &Fake) -> Vec<(String, String)> {
    fake.with(|state, now| {
        let ended = state
            .region
            .instances
            .values()
            .filter(|instance| instance.state(now) == State::Terminated);
        let joined = ended.filter_map(|instance| match &instance.joined {
            Joined::As(name) => Some((instance.id.clone(), name.clone())),
            Joined::NotYet | Joined::Never(_) | Joined::Left => None,
        });
        joined.collect()
    })
}

fn alive(fake: &Fake) -> Vec<String> {
    fake.with(|state, now| {
        let running = state
            .region
            .instances
            .values()
            .filter(|instance| instance.state(now) == State::Running);
        let joined = running.filter_map(|instance| match &instance.joined {
            Joined::As(name) => Some(name.clone()),
            Joined::NotYet | Joined::Never(_) | Joined::Left => None,
        });
        joined.collect()
    })
}

fn note(fake: &Fake, id: &str, joined: Joined) {
    fake.with(|state, _| {
        if let Some(instance) = state.region.instances.get_mut(id) {
            instance.joined = joined;
        }
    });
}

/// What the machine makes of its user data; `None` when it has gone in the meantime.
fn object(fake: &Fake, id: &str) -> Option<Result<Node, String>> {
    fake.with(|state, _| {
        let region = &state.region;
        let instance = region.instances.get(id)?;
        Some(registration(region, instance))
    })
}

fn registration(region: &Region, instance: &Instance) -> Result<Node, String> {
    let image = region.images.by_id.get(&instance.image);
    let family = image.map_or(Family::Custom, |image| Family::of_image(&image.name));
    let bootstrap = text(instance)
        .and_then(|text| user_data::read(family, &text))
        .map_err(|error| error.to_string())?;
    let cluster = &region.plan.cluster;
    if bootstrap.cluster != *cluster {
        return Err(format!(
            "the user data names the cluster {}, not {cluster}",
            bootstrap.cluster
        ));
    }
    Ok(node::object(region, instance, &bootstrap))
}

fn text(instance: &Instance) -> Result<String, UserDataError> {
    let encoded = instance.user_data.as_ref().ok_or(UserDataError::Absent)?;
    let bytes = STANDARD.decode(encoded).map_err(|_| UserDataError::NotText)?;
    String::from_utf8(bytes).map_err(|_| UserDataError::NotText)
}

async fn join(fake: &Fake, nodes: &Api<Node>, id: &str) {
    let node = match object(fake, id) {
        None => return,
        Some(Err(reason)) => {
            warn!(instance = id, reason, "an instance does not join");
            note(fake, id, Joined::Never(reason));
            return;
        }
        Some(Ok(node)) => node,
    };
    let name = node.metadata.name.clone().unwrap_or_default();
    match nodes.create(&PostParams::default(), &node).await {
        Ok(_) => {
            info!(instance = id, node = name, "joined");
            note(fake, id, Joined::As(name));
        }
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let present = nodes.get_opt(&name).await.ok().flatten();
            let provider_id = |node: &Node| node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
            if present.is_some_and(|present| provider_id(&present) == provider_id(&node)) {
                note(fake, id, Joined::As(name));
            }
        }
        Err(error) => warn!(instance = id, node = name, %error, "an instance could not join yet"),
    }
}

async fn leave(fake: &Fake, nodes: &Api<Node>, id: &str, name: &str) {
    let outcome = match nodes.get_opt(name).await {
        Ok(Some(present)) if present.metadata.deletion_timestamp.is_none() => {
            let condition = Preconditions {
                uid: present.metadata.uid,
                resource_version: None,
            };
            let params = DeleteParams::default().preconditions(condition);
            nodes.delete(name, &params).await.map(|_| ())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => note(fake, id, Joined::Left),
        Err(error) => warn!(node = name, %error, "a node could not be removed yet"),
    }
}

/// Renews the node's lease, as kubelets do; makes it the first time.
async fn heartbeat(leases: &Api<Lease>, name: &str, now: Timestamp) {
    let renew = Patch::Merge(json!({"spec": {"renewTime": MicroTime(now)}}));
    let renewed = leases.patch(name, &PatchParams::default(), &renew).await;
    let missing = matches!(&renewed, Err(kube::Error::Api(status)) if status.code == 404);
    let outcome = if missing {
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(name.to_owned()),
                lease_duration_seconds: Some(40),
                renew_time: Some(MicroTime(now)),
                ..LeaseSpec::default()
            }),
        };
        leases.create(&PostParams::default(), &lease).await.map(|_| ())
    } else {
        renewed.map(|_| ())
    };
    if let Err(error) = outcome {
        warn!(node = name, %error, "a heartbeat was lost");
    }
}
