//! Plays a story against the playground's cluster.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use clock::Clock;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, Pod},
};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

use super::story::{Await, Scale, Step, Story};

/// How often an awaited state is looked for, in the story's time.
const LOOK: Duration = Duration::from_millis(500);

/// What a step that waited has to tell.
#[derive(Debug)]
pub struct Waited {
    pub what: String,
    pub took: Duration,
}

pub struct Teller {
    client: Client,
    clock: Arc<dyn Clock>,
}

impl Teller {
    pub fn new(client: Client, clock: Arc<dyn Clock>) -> Self {
        Self { client, clock }
    }

    /// Plays all steps. Fails when something that the story awaits does not happen in time.
    pub async fn tell(&self, story: &Story) -> anyhow::Result<Vec<Waited>> {
        let start = self.clock.now();
        let mut waits = Vec::new();
        for step in &story.steps {
            let at = self.clock.now().duration_since(start).as_secs_f64();
            match step {
                Step::Say(line) => println!("{at:7.1}s  {line}"),
                Step::Wait(span) => tokio::time::sleep(span.0).await,
                Step::Scale(scale) => {
                    self.scale(scale).await?;
                    println!(
                        "{at:7.1}s  scale deployment/{} --replicas={}",
                        scale.deployment, scale.replicas
                    );
                }
                Step::Await(awaited) => {
                    let waited = self.wait(awaited).await?;
                    let at = self.clock.now().duration_since(start).as_secs_f64();
                    println!("{at:7.1}s  {} after {:.1}s", waited.what, waited.took.as_secs_f64());
                    waits.push(waited);
                }
            }
        }
        Ok(waits)
    }

    async fn scale(&self, scale: &Scale) -> anyhow::Result<()> {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &scale.namespace);
        let patch = Patch::Merge(json!({"spec": {"replicas": scale.replicas}}));
        let scaled = deployments
            .patch_scale(&scale.deployment, &PatchParams::default(), &patch)
            .await;
        scaled.with_context(|| format!("deployment {}/{} does not scale", scale.namespace, scale.deployment))?;
        Ok(())
    }

    async fn wait(&self, awaited: &Await) -> anyhow::Result<Waited> {
        let start = tokio::time::Instant::now();
        let what = describe(awaited);
        loop {
            let (ready, pods, nodes) = self.look().await?;
            let pods_there = awaited.pods.is_none_or(|count| ready == count && pods == count);
            if pods_there && awaited.nodes.is_none_or(|count| nodes == count) {
                return Ok(Waited {
                    what,
                    took: start.elapsed(),
                });
            }
            if start.elapsed() > awaited.within.0 {
                bail!(
                    "waited {:?} in vain for {what}; there are {nodes} nodes, {ready} of {pods} pods ready",
                    awaited.within.0
                );
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Ready pods, all pods of the default namespace, nodes.
    async fn look(&self) -> anyhow::Result<(usize, usize, usize)> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let pods = pods
            .list(&ListParams::default())
            .await
            .context("pods cannot be listed")?
            .items;
        let nodes: Api<Node> = Api::all(self.client.clone());
        // Their number is all that is asked, so the server need not send them.
        let nodes = nodes
            .list_metadata(&ListParams::default().limit(1))
            .await
            .context("nodes cannot be listed")?;
        let further = usize::try_from(nodes.metadata.remaining_item_count.unwrap_or(0))?;
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        Ok((ready, pods.len(), nodes.items.len() + further))
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .filter_map(|status| status.conditions.as_ref())
        .flatten();
    conditions
        .into_iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn describe(awaited: &Await) -> String {
    let pods = awaited.pods.map(|count| {
        if count == 0 {
            "no pod left".to_owned()
        } else {
            format!("{count} pods ready")
        }
    });
    let nodes = awaited.nodes.map(|count| {
        if count == 0 {
            "no node left".to_owned()
        } else {
            format!("{count} nodes")
        }
    });
    pods.into_iter().chain(nodes).collect::<Vec<_>>().join(", ")
}
