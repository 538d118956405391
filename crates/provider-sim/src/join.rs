//! What happens between a machine and the cluster: its Node object comes when it has booted and goes when it is gone.
//!
//! [`run`] plays the part of kubelets that join and of the cloud's node controller that cleans up after machines. It
//! belongs to the cloud and not to the controllers: it keeps running while they crash, and it takes up every
//! unfinished life when it is started again.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use model::ProviderId;
use serde_json::json;
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::{
    cloud::SimCloud,
    fate::after,
    machine::{Machine, NodeObject},
    node::{self, TOKEN_ANNOTATION},
};

const FIRST_PAUSE: SignedDuration = SignedDuration::from_millis(200);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(10);
/// How often a cluster may say that it does not want a node. It may have changed its mind by then; if not, the machine
/// counts as one whose kubelet never registers, and the claim's deadline deals with it.
const REFUSALS: u32 = 5;

/// Looks after every machine of the cloud. Never returns; dropping it stops all work at once.
pub async fn run(cloud: SimCloud, client: Client) {
    let nodes: Api<Node> = Api::all(client);
    let mut lives = JoinSet::new();
    cloud.all_are_newcomers();
    loop {
        for id in cloud.take_newcomers() {
            lives.spawn(life(cloud.clone(), nodes.clone(), id));
        }
        tokio::select! {
            biased;
            () = cloud.arrival() => {}
            Some(_) = lives.join_next() => {}
        }
    }
}

/// One machine's life as far as the cluster sees it.
async fn life(cloud: SimCloud, nodes: Api<Node>, id: ProviderId) {
    let Some(machine) = cloud.machine(&id) else { return };
    let mut seen = machine.node_object == NodeObject::Created;
    // A machine that never joins has no moment to wait for, and so waits for its end here.
    if !seen && cloud.outlives(&id, machine.joins).await {
        seen = true;
        if join(&cloud, &nodes, &machine).await {
            cloud.node_is(&id, NodeObject::Created);
            info!(node = %machine.node, "simulated node joined");
        }
    }
    cloud.outlives(&id, None).await;
    // Also after a failed attempt: its answer may have been lost, not the request.
    if seen {
        leave(&nodes, &machine).await;
    }
    cloud.node_is(&id, NodeObject::Removed);
}

/// Creates the Node. False when the machine ended first or the cluster does not want the node.
async fn join(cloud: &SimCloud, nodes: &Api<Node>, machine: &Machine) -> bool {
    let object = node::object(machine);
    let mut refusals = 0;
    let mut pause = FIRST_PAUSE;
    loop {
        match nodes.create(&PostParams::default(), &object).await {
            Ok(_) => return true,
            Err(kube::Error::Api(status)) if status.code == 409 => {
                // Either an answer to an earlier attempt was lost, or an older node of that name is still going away.
                if let Ok(Some(present)) = nodes.get_opt(machine.node.as_str()).await
                    && is_of(&present, machine)
                    && takes(nodes, &object).await
                {
                    return true;
                }
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 422) => {
                refusals += 1;
                warn!(node = %machine.node, reason = %status.message, "the cluster refuses a simulated node");
                if refusals == REFUSALS {
                    return false;
                }
            }
            Err(error) => warn!(node = %machine.node, %error, "a simulated node could not join yet"),
        }
        if !cloud
            .outlives(&machine.provider_id, Some(after(cloud.now(), pause)))
            .await
        {
            return false;
        }
        pause = (pause + pause).min(LONGEST_PAUSE);
    }
}

/// A kubelet that finds its node there leaves its taints as they are, and adds its own labels and what it reports.
async fn takes(nodes: &Api<Node>, object: &Node) -> bool {
    let metadata = json!({"labels": object.metadata.labels, "annotations": object.metadata.annotations});
    let (metadata, status) = (json!({ "metadata": metadata }), json!({ "status": object.status }));
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let params = PatchParams::default();
    let labelled = nodes.patch(name, &params, &Patch::Merge(&metadata)).await;
    labelled.is_ok() && nodes.patch_status(name, &params, &Patch::Merge(&status)).await.is_ok()
}

/// Deletes the Node of a machine that is gone. Finalizers may keep the object for longer; they are others' business.
async fn leave(nodes: &Api<Node>, machine: &Machine) {
    let name = machine.node.as_str();
    let mut pause = FIRST_PAUSE;
    loop {
        let outcome = match nodes.get_opt(name).await {
            Ok(Some(present)) if is_of(&present, machine) && present.metadata.deletion_timestamp.is_none() => {
                // By identity: a new machine may have taken the name since.
                let condition = Preconditions {
                    uid: present.metadata.uid,
                    resource_version: None,
                };
                let params = DeleteParams::default().preconditions(condition);
                nodes.delete(name, &params).await.map(|_| ())
            }
            Ok(_) => return,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(()) => {
                info!(node = name, "removed the node of a machine that is gone");
                return;
            }
            Err(error) => warn!(node = name, %error, "a node could not be removed yet"),
        }
        tokio::time::sleep(pause.unsigned_abs()).await;
        pause = (pause + pause).min(LONGEST_PAUSE);
    }
}

/// Nodes of upstream's provider carry no token; their provider ids are unique by themselves.
fn is_of(object: &Node, machine: &Machine) -> bool {
    let id = object.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    let annotations = object.metadata.annotations.as_ref();
    let token = annotations.and_then(|all| all.get(TOKEN_ANNOTATION));
    id == Some(machine.provider_id.as_str()) && token.is_none_or(|token| *token == machine.token)
}
