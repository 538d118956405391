//! Events are forgotten an hour after they were last written, as in the real server.
//!
//! No timer does it: the next event that is written takes the old ones away, which keeps a quiet server quiet.

use jiff::SignedDuration;

use crate::cluster::Cluster;
use crate::store::{Object, ObjectRef};

pub(super) const EVENTS: &str = "events";
const TTL: SignedDuration = SignedDuration::from_hours(1);

impl Cluster {
    pub(super) fn event_written(&mut self, at: &ObjectRef, object: &Object) {
        self.event_ages.push_back((self.now, at.key.clone(), object.revision));
        while let Some((written, key, revision)) = self.event_ages.front()
            && self.now.duration_since(*written) >= TTL
        {
            let old = ObjectRef {
                collection: at.collection.clone(),
                key: key.clone(),
            };
            // An event that was written again since has a younger entry further back.
            let expired = self
                .store
                .get_ref(&old)
                .is_some_and(|event| event.revision == *revision);
            self.event_ages.pop_front();
            if expired {
                self.evict_from_store(&old);
            }
        }
    }
}
