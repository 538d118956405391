//! The cluster that the kubeconfig names, listed once.

use std::{fmt::Debug, sync::Arc};

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, Resource, api::ListParams};
use model::Vocabulary;
use serde::de::DeserializeOwned;

use super::{
    Connection, Sellers, Wanted,
    load::{Cluster, Loading},
    objects::Objects,
};
use crate::{exit::Failure, kubeconfig, runtime::wait_for};

/// Large enough to be few requests, small enough for any proxy on the way.
const PAGE: u32 = 500;

pub fn read(
    connection: &Connection,
    wanted: Wanted,
    vocabulary: impl FnOnce(Sellers) -> Arc<Vocabulary>,
) -> Result<Cluster, Failure> {
    connected(connection, async |client| {
        list_all(client, wanted, vocabulary)
            .await
            .context("the cluster cannot be listed")
            .map_err(Failure::Unreachable)
    })
}

/// Does something with the cluster that the kubeconfig names.
pub fn connected<T>(
    connection: &Connection,
    work: impl AsyncFnOnce(Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    wait_for(async {
        let client = client(connection)
            .await
            .context("no cluster: the kubeconfig cannot be used; hint: commands with -f FILE read objects from files")
            .map_err(Failure::Input)?;
        work(client).await
    })
}

async fn client(connection: &Connection) -> anyhow::Result<Client> {
    let config = kubeconfig::config(connection.kubeconfig.as_deref(), connection.context.as_deref()).await?;
    Ok(Client::try_from(config)?)
}

async fn list_all(
    client: Client,
    wanted: Wanted,
    vocabulary: impl FnOnce(Sellers) -> Arc<Vocabulary>,
) -> anyhow::Result<Cluster> {
    let mut objects = Objects {
        namespaces: list(&client).await?,
        nodes: list(&client).await?,
        claims: list(&client).await?,
        pools: list(&client).await?,
        overlays: list(&client).await?,
        daemon_sets: list(&client).await?,
        budgets: list(&client).await?,
        volumes: list(&client).await?,
        volume_claims: list(&client).await?,
        storage_classes: list(&client).await?,
        csi_nodes: list(&client).await?,
        attachments: list(&client).await?,
        resource_claims: list(&client).await?,
        resource_slices: list(&client).await?,
        device_classes: list(&client).await?,
        ..Objects::default()
    };
    if wanted.selectors {
        objects.services = list(&client).await?;
        objects.replica_sets = list(&client).await?;
        objects.stateful_sets = list(&client).await?;
        objects.replication_controllers = list(&client).await?;
    }
    let sellers = objects.sellers();
    if wanted.ec2_classes && sellers == Sellers::Ec2 {
        objects.ec2_classes = list(&client).await?.into_iter().map(Ok).collect();
    }
    let mut loading = Loading::new(objects, "default", vocabulary(sellers));
    pages::<Pod>(&client, |pod| loading.pod(pod)).await?;
    let unread = loading.unread();
    let mut cluster = loading.finish();
    cluster.notes = unread
        .iter()
        .map(|(kind, key, error)| format!("{kind:?} {key}: {error}"))
        .collect();
    Ok(cluster)
}

async fn list<K>(client: &Client) -> anyhow::Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let mut objects = Vec::new();
    pages(client, |object| objects.push(object)).await?;
    Ok(objects)
}

async fn pages<K>(client: &Client, mut take: impl FnMut(K)) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = match api.list(&params).await {
            Ok(page) => page,
            // A kind that the cluster does not have, such as overlays where nobody has installed them.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(error) => return Err(error).with_context(|| K::plural(&()).into_owned()),
        };
        page.items.into_iter().for_each(&mut take);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(()),
        }
    }
}
