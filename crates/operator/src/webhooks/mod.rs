//! The webhooks of the time of Provisioners, for clusters that want them: every replica serves, the leader sees to
//! certificates.
//!
//! ```text
//!   leader     Secret ──► decide ──► new authority or certificate ──► Secret ──► whoever asks is told whom to trust
//!   everybody  Secret ──► the certificate of the next handshake;   reviews ──► crate `admission` ──► answers
//! ```
//!
//! | Module | Question |
//! | --- | --- |
//! | [`identity`] | what is in the Secret, and how is it made? |
//! | [`decide`] | what has to be made anew? |
//! | [`trust`] | who has to know the authority? |
//! | [`stored`] | which objects are still stored as v1beta1? |
//! | [`server`] | how is a review received and answered? |
//!
//! Nothing else waits for any of this: where the webhooks fail, the controllers do their work as before.

mod decide;
mod identity;
mod server;
mod stored;
mod trust;

use std::{net::IpAddr, sync::Arc, time::Duration};

use admission::Rules;
use clock::Clock;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, api::PostParams};
use tokio::time::sleep;
use tracing::{debug, info, warn};

use decide::{Step, decide};
use identity::{Identity, Uncertified};
use server::Offered;

/// How often the leader looks after certificates and those who have to trust them.
const LOOK_AFTER: Duration = Duration::from_secs(15);
/// How often a replica without a certificate looks for one.
const LOOK_FOR: Duration = Duration::from_secs(5);
/// How often a replica looks whether its certificate was renewed; there are days for that.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// The Service of the chart, where the settings do not name another.
const SERVICE: &str = "karpenter";

#[derive(Debug, thiserror::Error)]
enum WebhookError {
    #[error("Secret {name} cannot be read")]
    Read {
        name: String,
        #[source]
        cause: kube::Error,
    },
    #[error("Secret {name} cannot be written")]
    Write {
        name: String,
        #[source]
        cause: kube::Error,
    },
    #[error("no certificate can be made")]
    Certificate(#[source] rcgen::Error),
    #[error(transparent)]
    Unusable(#[from] Uncertified),
    #[error("{object} cannot be told whom to trust")]
    Trust {
        object: String,
        #[source]
        cause: kube::Error,
    },
}

/// Where the webhooks of a process are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub namespace: String,
    /// The name of the Service; empty for that of the chart.
    pub service: String,
    pub host: IpAddr,
}

impl Address {
    fn service(&self) -> &str {
        if self.service.is_empty() {
            SERVICE
        } else {
            &self.service
        }
    }

    fn secret(&self) -> String {
        format!("{}-cert", self.service())
    }

    /// What the certificate has to say: the names of the Service, and the address where it is a single one.
    fn names(&self) -> Vec<String> {
        let service = format!("{}.{}.svc", self.service(), self.namespace);
        let mut names = vec![format!("{service}.cluster.local"), service];
        if !self.host.is_unspecified() {
            names.push(self.host.to_string());
        }
        names
    }
}

/// The webhooks of one process.
pub struct Webhooks {
    client: Client,
    clock: Arc<dyn Clock>,
    address: Address,
    rules: Rules,
    offered: Arc<Offered>,
}

impl Webhooks {
    pub fn new(client: Client, clock: Arc<dyn Clock>, address: Address, rules: Rules) -> Self {
        Self {
            client,
            clock,
            address,
            rules,
            offered: Arc::default(),
        }
    }

    /// Whether a handshake can succeed.
    pub fn is_ready(&self) -> bool {
        self.offered.current().is_some()
    }

    /// Offers what the Secret holds. Never returns.
    pub async fn follow(&self) {
        loop {
            match self.stored().await {
                Ok((_, Some(identity))) => self.offer(&identity),
                Ok((_, None)) => debug!(secret = self.address.secret(), "there is no certificate yet"),
                Err(error) => warn!(
                    error = &error as &dyn std::error::Error,
                    "no certificate can be looked for"
                ),
            }
            sleep(if self.is_ready() { LOOK_AGAIN } else { LOOK_FOR }).await;
        }
    }

    /// What only the leader does: certificates are there before they are needed, whoever asks trusts them, and what can
    /// be stored as v1 is. Never returns.
    pub async fn keep(&self) {
        tokio::join!(self.keep_certificates(), stored::keep(&self.client));
    }

    async fn keep_certificates(&self) {
        loop {
            if let Err(error) = self.look_after().await {
                warn!(
                    error = &error as &dyn std::error::Error,
                    "webhooks are not looked after"
                );
            }
            sleep(LOOK_AFTER).await;
        }
    }

    /// One thing is renewed at a time, and everybody trusts the newest authority before it signs: the next look is the
    /// first that may let it.
    async fn look_after(&self) -> Result<(), WebhookError> {
        let (secret, found) = self.stored().await?;
        let now = self.clock.now();
        let names = self.address.names();
        let made = match (decide(found.as_ref(), &names, now), &found) {
            (Step::Keep, _) => None,
            (Step::RenewAuthority, Some(found)) => Some(found.with_new_authority(now)),
            (Step::RenewCertificate, Some(found)) => Some(found.with_new_certificate(&names, now)),
            (Step::Begin | Step::RenewAuthority | Step::RenewCertificate, _) => Some(Identity::new(&names, now)),
        };
        let identity = match made {
            Some(made) => self.store(secret, made.map_err(WebhookError::Certificate)?).await?,
            None => found,
        };
        if let Some(identity) = identity {
            self.offer(&identity);
            trust::spread(&self.client, &identity.authorities()).await?;
        }
        Ok(())
    }

    fn offer(&self, identity: &Identity) {
        match identity.certified_key() {
            Ok(key) => self.offered.set(key),
            Err(error) => warn!(error = &error as &dyn std::error::Error, "a certificate cannot be used"),
        }
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.address.namespace)
    }

    /// The Secret, and what it holds. One that holds something else counts as empty.
    async fn stored(&self) -> Result<(Option<Secret>, Option<Identity>), WebhookError> {
        let name = self.address.secret();
        let secret = self.secrets().get_opt(&name).await;
        let secret = secret.map_err(|cause| WebhookError::Read { name, cause })?;
        let identity = secret.as_ref().and_then(Identity::stored);
        Ok((secret, identity))
    }

    /// Writes the Secret, unless somebody else was faster: then theirs counts.
    async fn store(&self, old: Option<Secret>, identity: Identity) -> Result<Option<Identity>, WebhookError> {
        identity.certified_key()?;
        let name = self.address.secret();
        let is_new = old.is_none();
        let secret = identity.secret(&name, old);
        let params = PostParams::default();
        let written = if is_new {
            self.secrets().create(&params, &secret).await
        } else {
            self.secrets().replace(&name, &params, &secret).await
        };
        match written {
            Ok(_) => {
                info!(secret = name, authority = %identity.authority_until, certificate = %identity.certificate_until, "stored the certificates of webhooks");
                Ok(Some(identity))
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(self.stored().await?.1),
            Err(cause) => Err(WebhookError::Write { name, cause }),
        }
    }
}

#[cfg(test)]
mod tests;
