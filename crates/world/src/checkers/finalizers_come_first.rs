//! The finalizer is on the claim before anything is launched for it, and on the node before it counts as registered
//! (lifecycle.md 18.1).

use api::labels::{REGISTERED, finalizers::TERMINATION};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Checker, Moment, Verdict};
use crate::{
    history::Deed,
    mirror::{Change, Key, Seen},
};

pub struct FinalizersComeFirst;

impl Checker for FinalizersComeFirst {
    fn name(&self) -> &'static str {
        "finalizers come first"
    }

    fn saw(&mut self, seen: &Seen, _: &Moment<'_>) -> Verdict {
        let Seen::Node(Change {
            old, new: Some(node), ..
        }) = seen
        else {
            return Ok(());
        };
        let registered = |meta: &ObjectMeta| {
            meta.labels
                .as_ref()
                .is_some_and(|labels| labels.contains_key(REGISTERED))
        };
        let newly = registered(&node.metadata) && !old.as_ref().is_some_and(|old| registered(&old.metadata));
        if newly && !has_finalizer(&node.metadata) {
            return Err(format!("node {} is registered and has no finalizer", seen.key()));
        }
        Ok(())
    }

    fn called(&mut self, deed: &Deed, moment: &Moment<'_>) -> Verdict {
        let Deed::Launch { claim, .. } = deed else {
            return Ok(());
        };
        match moment.scene.node_claims.get(&Key::cluster(claim.as_str())) {
            Some(object) if has_finalizer(&object.metadata) => Ok(()),
            Some(_) => Err(format!("launch for claim {claim}, which has no finalizer")),
            None => Err(format!("launch for claim {claim}, which does not exist")),
        }
    }
}

fn has_finalizer(meta: &ObjectMeta) -> bool {
    meta.finalizers
        .iter()
        .flatten()
        .any(|finalizer| finalizer == TERMINATION)
}
