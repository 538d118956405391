//! Where the provider reads KWOKNodeClass objects from.

use std::collections::BTreeMap;

use api::{kwok::KwokNodeClass, labels::KWOK_DOMAIN};
use async_trait::async_trait;
use jiff::SignedDuration;
use kube::Api;
use provider::{NodeClassKind, ProviderError};

pub const KIND: NodeClassKind = NodeClassKind {
    group: KWOK_DOMAIN,
    version: "v1alpha1",
    kind: "KWOKNodeClass",
    plural: "kwoknodeclasses",
};

/// The node classes of a cluster, or of a test without one.
#[async_trait]
pub trait NodeClasses: Send + Sync + 'static {
    async fn find(&self, name: &str) -> Result<Option<KwokNodeClass>, kube::Error>;
}

#[async_trait]
impl NodeClasses for Api<KwokNodeClass> {
    async fn find(&self, name: &str) -> Result<Option<KwokNodeClass>, kube::Error> {
        self.get_opt(name).await
    }
}

/// Classes that are all known from the start.
#[async_trait]
impl NodeClasses for BTreeMap<String, KwokNodeClass> {
    async fn find(&self, name: &str) -> Result<Option<KwokNodeClass>, kube::Error> {
        Ok(self.get(name).cloned())
    }
}

/// How long nodes of this class take from boot to registration, if the class may be used at all.
///
/// A class that does not exist counts as a lack of capacity, as it does for upstream's providers: the claim goes, and
/// its pods get another chance.
pub async fn registration_delay(classes: &dyn NodeClasses, name: &str) -> Result<SignedDuration, ProviderError> {
    let found = classes
        .find(name)
        .await
        .map_err(|cause| ProviderError::Unavailable { cause: cause.into() })?;
    let class = found.ok_or_else(|| ProviderError::InsufficientCapacity {
        details: format!("there is no {} {name}", KIND.kind),
    })?;
    let conditions = class
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    if let Some(ready) = conditions
        .filter(|condition| condition.type_ == "Ready")
        .find(|ready| ready.status == "False")
    {
        let details = ready.message.clone();
        return Err(ProviderError::NodeClassNotReady { details });
    }
    Ok(delay_of(&class))
}

/// The API server admits only durations here; whatever else is there means no delay.
pub fn delay_of(class: &KwokNodeClass) -> SignedDuration {
    let written = class.spec.node_registration_delay.as_ref();
    let delay = written.and_then(|delay| delay.parse().ok()).unwrap_or_default();
    delay.max(SignedDuration::ZERO)
}
