//! The hash of a class on the class and on its claims, by which drift of the static fields is told.

use api::{
    aws::EC2NodeClass,
    conditions::{self, HasConditions, node_claim as condition},
    labels::annotations::{EC2_NODE_CLASS_HASH, EC2_NODE_CLASS_HASH_VERSION},
    v1::NodeClaim,
};
use async_trait::async_trait;
use controllers::{
    error::StepError,
    runtime::{Action, Reconcile},
};
use kube::ResourceExt;
use provider_aws::class_hash::{self, Restamp, Stamped};
use state::{Event, View};
use tracing::error;

use crate::{
    AwsCtx,
    objects::{class, class_of, scope},
};

pub struct Hashes {
    aws: AwsCtx,
}

impl Hashes {
    pub fn new(aws: &AwsCtx) -> Self {
        Self { aws: aws.clone() }
    }

    /// Claims are stamped before their class, so that a crash in between repeats the work instead of drifting them.
    async fn restamp(&self, view: &View, class: &EC2NodeClass, hash: &str) -> Result<(), StepError> {
        let name = class.name_any();
        for claim in view.claims.values().filter(|claim| class_of(claim) == Some(&name)) {
            if let Some(stamped) = restamped(class, claim, hash) {
                self.aws.ctx.writer.update::<NodeClaim>(claim, &stamped).await?;
            }
        }
        Ok(())
    }
}

fn stamp(annotations: &mut std::collections::BTreeMap<String, String>, hash: Option<&str>) {
    let version = class_hash::VERSION.as_str().to_owned();
    annotations.insert(EC2_NODE_CLASS_HASH_VERSION.to_owned(), version);
    annotations.extend(hash.map(|hash| (EC2_NODE_CLASS_HASH.to_owned(), hash.to_owned())));
}

/// The claim under the present version, unless it is stamped so already.
fn restamped(class: &EC2NodeClass, claim: &NodeClaim, hash: &str) -> Option<NodeClaim> {
    let stamped = Stamped {
        version: claim.annotations().get(EC2_NODE_CLASS_HASH_VERSION).map(String::as_str),
        drifted: conditions::find(claim.conditions(), condition::DRIFTED).is_some(),
    };
    let of_class = class.annotations().get(EC2_NODE_CLASS_HASH_VERSION);
    let hash = match class_hash::restamp(of_class.map(String::as_str), stamped) {
        Restamp::Keep => return None,
        Restamp::VersionAndHash => Some(hash),
        Restamp::VersionAlone => None,
    };
    let mut claim = claim.clone();
    stamp(claim.metadata.annotations.get_or_insert_default(), hash);
    Some(claim)
}

#[async_trait]
impl Reconcile for Hashes {
    /// The name of the class.
    type Key = String;
    type Error = StepError;
    const NAME: &'static str = "nodeclass.hash";
    const CONCURRENCY: usize = 10;

    fn keys(&self, event: &Event, _: &View, add: &mut dyn FnMut(String)) {
        if let Event::NodeClass(change) = event
            && *change.key.namespace == *scope()
        {
            add(change.key.name.to_string());
        }
    }

    async fn reconcile(&self, name: &String) -> Result<Action, StepError> {
        let view = self.aws.ctx.index.view();
        let Some(class) = class(&view, name).filter(|class| class.metadata.deletion_timestamp.is_none()) else {
            return Ok(Action::AwaitChange);
        };
        let ca_bundle = self.aws.services.cluster().ca_bundle.unwrap_or_default();
        let hash = match class_hash::hash(&class.spec, &ca_bundle) {
            Ok(hash) => hash,
            Err(cause) => {
                // Validation says the same to the user; here it only means that there is nothing to compare.
                error!(EC2NodeClass = name, error = %cause, "could not hash the class");
                return Ok(Action::AwaitChange);
            }
        };
        self.restamp(&view, &class, &hash).await?;
        let mut wanted = class.clone();
        stamp(wanted.metadata.annotations.get_or_insert_default(), Some(&hash));
        self.aws.ctx.writer.update(&class, &wanted).await?;
        Ok(Action::AwaitChange)
    }
}
