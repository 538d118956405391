//! Kinds of the time of Provisioners, watched only where that time is not over: Provisioners, node templates, machines, and
//! the one ConfigMap that held the settings of all of them.

use std::sync::Arc;

use api::{
    Stored,
    aws::AwsNodeTemplate,
    convert::Parsed,
    labels::{PROVISIONER_NAME, annotations::DO_NOT_EVICT},
    v1alpha5::{Machine, Provisioner},
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use model::pod::DoNotDisrupt;

use crate::{Change, Event, Index, Indexed, Kind, Table, index::Core, kinds::slim};

macro_rules! kept_as_stored {
    ($type:ty, $table:ident, $kind:ident) => {
        impl Indexed for $type {
            const KIND: Kind = Kind::$kind;
            type Kept = $type;

            fn keep(self, _: &mut Core) -> Option<Parsed<$type>> {
                Some(slim(self).into())
            }

            fn table(core: &mut Core) -> &mut Table<$type> {
                &mut core.view_mut().$table
            }

            fn settle(_: &mut Core, _: &Change<$type>) {}

            fn event(change: Change<$type>) -> Option<Event> {
                Some(Event::$kind(change))
            }
        }
    };
}

kept_as_stored!(Stored<Provisioner>, provisioners, Provisioner);
kept_as_stored!(Stored<AwsNodeTemplate>, node_templates, NodeTemplate);
kept_as_stored!(Stored<Machine>, machines, Machine);
kept_as_stored!(ConfigMap, settings, GlobalSettings);

impl Index {
    /// What pods said in the time of Provisioners counts from now on: whom they belong to, and that they are not to be evicted. To be called before anything is fed in.
    pub fn heed_old_words(&self) {
        self.write(|core| {
            core.old_words = true;
            let vocabulary = &mut core.view_mut().snapshot.vocabulary;
            Arc::make_mut(vocabulary).permitted.insert(PROVISIONER_NAME.into());
        });
    }
}

/// A pod that was not to be evicted is not to be disrupted. What it says in today's words wins.
pub(crate) fn heed(written: &Pod, pod: &mut model::Pod) {
    let says = written.metadata.annotations.as_ref();
    let protected = says
        .and_then(|all| all.get(DO_NOT_EVICT))
        .is_some_and(|word| word == "true");
    if protected && pod.do_not_disrupt.is_none() {
        pod.do_not_disrupt = Some(DoNotDisrupt::Always);
    }
}
