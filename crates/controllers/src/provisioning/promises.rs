//! Which pods a claim was made for, until its node is there to bind them to.
//!
//! No progress is kept here: who forgets it leaves the pods to the scheduler, which places them a little later.

use std::collections::BTreeMap;

use model::PodKey;
use parking_lot::Mutex;

#[derive(Debug, Default)]
pub struct Promises(Mutex<BTreeMap<String, Vec<PodKey>>>);

impl Promises {
    /// What was promised for claims that are gone is forgotten on the way.
    pub fn put(&self, claim: String, pods: &[PodKey], is_there: impl Fn(&str) -> bool) {
        let mut promises = self.0.lock();
        promises.retain(|claim, _| is_there(claim));
        promises.insert(claim, pods.to_vec());
    }

    /// The pods of a claim, once.
    pub fn take(&self, claim: &str) -> Vec<PodKey> {
        self.0.lock().remove(claim).unwrap_or_default()
    }
}
