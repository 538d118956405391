//! The cluster that instances join.

use std::path::{Path, PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use crate::region::Plan;

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("{} leads to no cluster", path.display())]
    Kubeconfig {
        path: PathBuf,
        #[source]
        cause: KubeconfigError,
    },
    #[error("the cluster does not answer")]
    Cluster(#[source] kube::Error),
}

/// A client of the cluster that a kubeconfig leads to. EKS then tells that cluster's address, authority and version.
pub async fn connect(path: &Path, plan: &mut Plan) -> Result<Client, ConnectError> {
    let unusable = |cause| ConnectError::Kubeconfig {
        path: path.to_owned(),
        cause,
    };
    let kubeconfig = Kubeconfig::read_from(path).map_err(unusable)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config = config.map_err(unusable)?;
    config
        .cluster_url
        .to_string()
        .trim_end_matches('/')
        .clone_into(&mut plan.endpoint);
    if let Some(authority) = config.root_cert.as_ref().and_then(|chain| chain.first()) {
        plan.authority = STANDARD.encode(pem(authority));
    }
    let client = Client::try_from(config).map_err(ConnectError::Cluster)?;
    let version = client.apiserver_version().await.map_err(ConnectError::Cluster)?;
    plan.version = format!("{}.{}", version.major, version.minor.trim_end_matches('+'));
    Ok(client)
}

fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(64)
        .filter_map(|line| std::str::from_utf8(line).ok())
        .collect();
    format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        lines.join("\n")
    )
}
