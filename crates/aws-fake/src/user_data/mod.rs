//! What a machine makes of its user data: which cluster it joins, and as what.
//!
//! Every family of images reads its own format and no other: Amazon Linux 2 a call of `bootstrap.sh`, Amazon Linux 2023 a
//! NodeConfig, Bottlerocket TOML, Windows PowerShell. Images of one's own may do any of it.

mod bottlerocket;
mod kubelet;
mod mime;
mod node_config;
mod shell;

use std::collections::BTreeMap;

/// Why a machine does not join.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserDataError {
    #[error("there is no user data")]
    Absent,
    #[error("the user data is no text")]
    NotText,
    #[error("the MIME archive cannot be read: {0}")]
    Mime(String),
    #[error("no part of the user data calls bootstrap.sh")]
    NoBootstrap,
    #[error("no part of the user data is a NodeConfig")]
    NoNodeConfig,
    #[error("a NodeConfig cannot be read: {0}")]
    NodeConfig(String),
    #[error("the settings cannot be read: {0}")]
    Settings(String),
    #[error("the user data is no PowerShell script that starts EKSBootstrap")]
    NoPowerShell,
    #[error("the user data does not name the {0}")]
    Missing(&'static str),
    #[error("{0} is no taint")]
    Taint(String),
}

/// The image's kind, which decides how user data is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Al2,
    Al2023,
    Bottlerocket,
    Windows,
    /// An image that is not Amazon's.
    Custom,
}

impl Family {
    /// By the name of the image.
    pub fn of_image(name: &str) -> Self {
        if name.starts_with("amazon-eks-node-al2023-") {
            Family::Al2023
        } else if name.starts_with("amazon-eks-") {
            Family::Al2
        } else if name.starts_with("bottlerocket-") {
            Family::Bottlerocket
        } else if name.starts_with("Windows_Server-") {
            Family::Windows
        } else {
            Family::Custom
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    pub key: String,
    pub value: String,
    pub effect: String,
}

/// What the machine was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bootstrap {
    pub cluster: String,
    pub endpoint: String,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    pub max_pods: Option<u32>,
    /// By resource, as they were written.
    pub kube_reserved: BTreeMap<String, String>,
    pub system_reserved: BTreeMap<String, String>,
}

/// Reads user data as an image of this family does.
pub fn read(family: Family, text: &str) -> Result<Bootstrap, UserDataError> {
    let found = match family {
        Family::Al2 => shell::bootstrap(&mime::parts(text)?),
        Family::Al2023 => node_config::bootstrap(&mime::parts(text)?),
        Family::Bottlerocket => bottlerocket::bootstrap(text),
        Family::Windows => shell::power_shell(text),
        Family::Custom => any(text),
    }?;
    if found.cluster.is_empty() {
        return Err(UserDataError::Missing("cluster"));
    }
    if found.endpoint.is_empty() {
        return Err(UserDataError::Missing("API server"));
    }
    Ok(found)
}

/// An image of one's own: whatever says which cluster to join.
fn any(text: &str) -> Result<Bootstrap, UserDataError> {
    if text.contains("<powershell>") {
        return shell::power_shell(text);
    }
    if let Ok(settings) = bottlerocket::bootstrap(text) {
        return Ok(settings);
    }
    let parts = mime::parts(text)?;
    match node_config::bootstrap(&parts) {
        Err(UserDataError::NoNodeConfig) => shell::bootstrap(&parts),
        other => other,
    }
}

#[cfg(test)]
mod tests;
