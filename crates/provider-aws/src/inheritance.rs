//! Instances that an earlier process launched and could not write down any more.
//!
//! A process that dies after a fleet was granted and before the claims' statuses were written leaves instances that no claim
//! names, and claims that have none. Asking again with the fleet's token brings the same instances only if the same claims
//! ask together and for the same offerings. So the claims of an earlier process look first among what is there.

use std::{collections::BTreeMap, sync::Arc};

use model::ClaimName;
use parking_lot::Mutex;

use crate::{
    batch::{Batcher, CREATE_FLEET},
    instances::{InstanceError, Instances},
    ports::InstanceInfo,
};

type Answer = Result<Option<InstanceInfo>, Arc<InstanceError>>;

/// Whom instances were given to by this process. One instance is never given to two claims.
#[derive(Default)]
pub struct Owners(Mutex<BTreeMap<String, ClaimName>>);

impl Owners {
    pub fn of(&self, instance: &str) -> Option<ClaimName> {
        self.0.lock().get(instance).cloned()
    }

    /// Gives the instance to the claim. `false` when it is another's.
    #[must_use]
    pub fn give(&self, instance: &str, claim: &ClaimName) -> bool {
        let mut owners = self.0.lock();
        let owner = owners.entry(instance.to_owned()).or_insert_with(|| claim.clone());
        owner == claim
    }

    pub fn forget(&self, instance: &str) {
        self.0.lock().remove(instance);
    }
}

/// A claim of an earlier process.
pub struct Heir {
    pub claim: ClaimName,
    /// Whether an instance may be the one that was launched for it.
    pub fits: Box<dyn Fn(&InstanceInfo) -> bool + Send>,
}

/// Shares out what is there among the claims that ask for it.
pub struct Inheritance {
    owners: Arc<Owners>,
    batcher: Batcher<Heir, Answer>,
}

impl Inheritance {
    pub fn new(owners: Arc<Owners>) -> Self {
        Self {
            owners,
            batcher: Batcher::new(CREATE_FLEET),
        }
    }

    /// Answers what is gathered, with one list of all instances for everybody who asks at the same time.
    pub async fn run(&self, instances: Arc<Instances>) {
        let owners = self.owners.clone();
        let answer = move |heirs: Vec<Heir>| {
            let (owners, instances) = (owners.clone(), instances.clone());
            async move {
                match instances.list().await {
                    Ok(instances) => shared_out(&heirs, &instances, &owners).into_iter().map(Ok).collect(),
                    Err(error) => {
                        let error = Arc::new(error);
                        heirs.iter().map(|_| Err(error.clone())).collect()
                    }
                }
            }
        };
        self.batcher.run(answer, |_| ()).await;
    }

    /// The instance that was launched for this claim, if there is one. `None` when the program is stopping.
    pub async fn ask(&self, heir: Heir) -> Option<Answer> {
        self.batcher.ask(String::new(), heir).await
    }
}

/// As many heirs as possible get an instance that fits them: one who could take several leaves to the others what only
/// they can take.
fn shared_out(heirs: &[Heir], instances: &[InstanceInfo], owners: &Owners) -> Vec<Option<InstanceInfo>> {
    let free = |heir: &Heir, instance: &InstanceInfo| owners.of(&instance.id).is_none_or(|owner| owner == heir.claim);
    let fits: Vec<Vec<usize>> = heirs
        .iter()
        .map(|heir| {
            let own = |&(_, instance): &(usize, &InstanceInfo)| free(heir, instance) && (heir.fits)(instance);
            let found = instances.iter().enumerate().filter(own);
            found.map(|(place, _)| place).collect()
        })
        .collect();
    let mut holders: Vec<Option<usize>> = vec![None; instances.len()];
    for heir in 0..heirs.len() {
        settle(heir, &fits, &mut holders, &mut vec![false; instances.len()]);
    }
    let mut shares: Vec<Option<InstanceInfo>> = vec![None; heirs.len()];
    for (instance, holder) in instances.iter().zip(holders) {
        let Some(holder) = holder else { continue };
        // A fleet that was answered meanwhile may have been faster.
        if owners.give(&instance.id, &heirs[holder].claim) {
            shares[holder] = Some(instance.clone());
        }
    }
    shares
}

/// Finds a place for one heir, by moving others to places that suit them too.
fn settle(heir: usize, fits: &[Vec<usize>], holders: &mut [Option<usize>], seen: &mut [bool]) -> bool {
    for &place in &fits[heir] {
        if std::mem::replace(&mut seen[place], true) {
            continue;
        }
        let is_free = match holders[place] {
            None => true,
            Some(holder) => settle(holder, fits, holders, seen),
        };
        if is_free {
            holders[place] = Some(heir);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claim, the instances that fit it, and the one that it gets.
    type Row<'a> = (&'a str, &'a [&'a str], Option<&'a str>);

    #[track_caller]
    fn check(there: &[&str], owned: &[(&str, &str)], rows: &[Row<'_>]) {
        let owners = Owners::default();
        for (instance, claim) in owned {
            assert!(owners.give(instance, &(*claim).into()));
        }
        let instance = |id: &&str| InstanceInfo {
            id: (*id).to_owned(),
            ..InstanceInfo::default()
        };
        let instances: Vec<InstanceInfo> = there.iter().map(instance).collect();
        let heirs: Vec<Heir> = rows
            .iter()
            .map(|(claim, fitting, _)| {
                let fitting: Vec<String> = fitting.iter().map(|id| (*id).to_owned()).collect();
                Heir {
                    claim: (*claim).into(),
                    fits: Box::new(move |instance| fitting.contains(&instance.id)),
                }
            })
            .collect();
        let shares = shared_out(&heirs, &instances, &owners);
        for ((claim, _, expected), share) in rows.iter().zip(&shares) {
            assert_eq!(share.as_ref().map(|one| one.id.as_str()), *expected, "{claim}");
            if let Some(share) = share {
                assert_eq!(owners.of(&share.id), Some((*claim).into()));
            }
        }
    }

    #[test]
    fn everybody_gets_an_instance_of_their_own_as_far_as_they_go() {
        check(&[], &[], &[("a", &["i-1"], None)]);
        check(
            &["i-1", "i-2"],
            &[],
            &[
                ("a", &["i-1", "i-2"], Some("i-2")),
                ("b", &["i-1", "i-2"], Some("i-1")),
                ("c", &["i-1", "i-2"], None),
            ],
        );
    }

    #[test]
    fn the_choosy_are_served_before_those_who_can_take_anything() {
        check(
            &["i-1", "i-2", "i-3"],
            &[],
            &[
                ("any", &["i-1", "i-2", "i-3"], Some("i-3")),
                ("first-or-second", &["i-1", "i-2"], Some("i-2")),
                ("first", &["i-1"], Some("i-1")),
            ],
        );
    }

    #[test]
    fn what_another_claim_has_is_not_given_away() {
        let fitting: &[&str] = &["i-1", "i-2"];
        check(&["i-1", "i-2"], &[("i-1", "other")], &[("a", fitting, Some("i-2"))]);
        check(
            &["i-1", "i-2"],
            &[("i-2", "a"), ("i-1", "b")],
            &[("a", fitting, Some("i-2"))],
        );
        let owners = Owners::default();
        assert!(owners.give("i-1", &"a".into()) && owners.give("i-1", &"a".into()));
        assert!(!owners.give("i-1", &"b".into()));
        owners.forget("i-1");
        assert!(owners.give("i-1", &"b".into()));
    }
}
