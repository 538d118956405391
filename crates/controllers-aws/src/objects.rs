//! Kubernetes as the provider sees it: through the index of whichever fleet runs now.

use std::sync::Arc;

use api::{aws::EC2NodeClass, v1::NodeClaim, v1alpha1::NodeOverlay};
use jiff::Timestamp;
use kube::ResourceExt;
use model::{ClaimName, Labels, ProviderId};
use parking_lot::RwLock;
use provider_aws::{Inherited, NODE_CLASS, Objects};
use state::{Index, NodeClass, ObjectKey, View};
use tracing::warn;

/// Shut until the first fleet starts. A process that leads again later looks through a new index.
#[derive(Default)]
pub struct Window {
    open: RwLock<Option<Open>>,
}

struct Open {
    index: Arc<Index>,
    since: Timestamp,
}

impl Window {
    pub(crate) fn open(&self, index: Arc<Index>, since: Timestamp) {
        *self.open.write() = Some(Open { index, since });
    }

    fn view(&self) -> Option<Arc<View>> {
        self.open.read().as_ref().map(|open| open.index.view())
    }
}

impl Objects for Window {
    fn class(&self, name: &str) -> Option<Arc<EC2NodeClass>> {
        class(&*self.view()?, name).map(Arc::new)
    }

    fn claim_annotations(&self, instance: &ProviderId) -> Option<Labels> {
        let view = self.view()?;
        let claim = view.claims_of(instance.as_str()).into_iter().next()?;
        let annotations = claim.annotations().iter();
        Some(
            annotations
                .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
                .collect(),
        )
    }

    fn is_claimed(&self, instance: &ProviderId) -> bool {
        let view = self.view();
        view.is_some_and(|view| !view.claims_of(instance.as_str()).is_empty())
    }

    fn inherited(&self, claim: &ClaimName) -> Option<Inherited> {
        let view = self.view()?;
        let at = self.open.read().as_ref()?.since;
        let created = view.claims.named(claim.as_str())?.creation_timestamp()?.0;
        (created <= at).then_some(Inherited { created, at })
    }

    fn overlays(&self) -> Vec<Arc<NodeOverlay>> {
        let view = self.view();
        view.iter().flat_map(|view| view.overlays.values()).cloned().collect()
    }
}

/// Where the classes of this provider are kept among all classes.
pub fn scope() -> String {
    format!("{}/{}", NODE_CLASS.group, NODE_CLASS.kind)
}

pub fn class(view: &View, name: &str) -> Option<EC2NodeClass> {
    read(view.classes.get(&ObjectKey::new(&scope(), name))?)
}

pub fn classes(view: &View) -> impl Iterator<Item = EC2NodeClass> {
    let own = view.classes.values().filter(|class| is_own(class));
    own.filter_map(|class| read(class))
}

fn is_own(class: &NodeClass) -> bool {
    let types = class.object.types.as_ref();
    types.is_some_and(|types| types.kind == NODE_CLASS.kind && types.api_version.starts_with(NODE_CLASS.group))
}

/// The server admits only what can be read; a class that another version of the schema let in is as good as none.
fn read(class: &NodeClass) -> Option<EC2NodeClass> {
    match class.object.clone().try_parse() {
        Ok(class) => Some(class),
        Err(error) => {
            warn!(EC2NodeClass = class.name, %error, "a node class cannot be read");
            None
        }
    }
}

/// The name of the class that a claim refers to, if it is one of this provider's.
pub fn class_of(claim: &NodeClaim) -> Option<&str> {
    let class = &claim.spec.node_class_ref;
    (class.group == NODE_CLASS.group && class.kind == NODE_CLASS.kind).then_some(class.name.as_str())
}

/// The instance behind a claim, once there is one.
pub fn instance_of(claim: &NodeClaim) -> Option<&str> {
    let id = claim.status.as_ref()?.provider_id.as_deref()?;
    (!id.is_empty()).then_some(id)
}
