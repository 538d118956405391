//! Claims as the search takes them: classes looked up, selectors read, limits checked.

use std::{collections::BTreeSet, sync::Arc};

use model::{
    PodKey, Snapshot,
    dra::{Amounts, Ask, ConstraintRule, DeviceAsk, DeviceCount, DeviceSelector, ResourceClaim},
};

use super::{cel::Condition, constraint::Match, refusal::DraRefusal, selectors::Selectors};

/// The most devices that one claim can be given: the limit of the API.
pub(super) const MOST_PER_CLAIM: usize = 32;

/// A claim that has to be given devices.
#[derive(Debug)]
pub(super) struct Wanted {
    pub key: PodKey,
    pub requests: Vec<Request>,
    pub constraints: Vec<Match>,
    /// What it takes at least.
    pub least: usize,
}

#[derive(Debug)]
pub(super) struct Request {
    pub name: Arc<str>,
    /// One, or several of which the first that can be had is taken.
    pub options: Vec<Wish>,
}

#[derive(Debug)]
pub(super) struct Wish {
    /// The request's name, or `request/alternative`: as the allocation will call it.
    pub name: String,
    /// `None` for all that match.
    pub count: Option<usize>,
    pub conditions: Vec<Arc<Condition>>,
    pub capacity: Amounts,
}

impl Wanted {
    pub fn new(snapshot: &Snapshot, selectors: &Selectors, claim: &ResourceClaim) -> Result<Self, DraRefusal> {
        let reader = Reader {
            snapshot,
            selectors,
            claim,
        };
        let requests = claim.requests.iter().map(|request| {
            let name = &request.name;
            let options = match &request.ask {
                Ask::Exactly(ask) => vec![reader.wish(name.to_string(), ask)?],
                Ask::FirstAvailable(options) => {
                    let wish = |(below, ask): &(Arc<str>, DeviceAsk)| reader.wish(format!("{name}/{below}"), ask);
                    options.iter().map(wish).collect::<Result<_, _>>()?
                }
                Ask::Unknown => return Err(reader.unsupported(format!("the form of request {name:?}"))),
            };
            Ok(Request {
                name: name.clone(),
                options,
            })
        });
        let requests: Vec<Request> = requests.collect::<Result<_, _>>()?;
        let constraints = claim.constraints.iter().map(|constraint| match &constraint.rule {
            ConstraintRule::MatchAttribute(attribute) => Ok(Match::new(attribute.clone(), constraint.requests.clone())),
            ConstraintRule::Unknown(rule) => Err(reader.unsupported(format!("constraint {rule}"))),
        });
        let constraints = constraints.collect::<Result<_, _>>()?;
        let least = |request: &Request| request.options.iter().map(|wish| wish.count.unwrap_or(1).max(1)).min();
        let least = requests.iter().filter_map(least).fold(0, usize::saturating_add);
        if least > MOST_PER_CLAIM {
            return Err(DraRefusal::TooManyDevices {
                claim: claim.key.clone(),
                devices: least,
                most: MOST_PER_CLAIM,
            });
        }
        Ok(Self {
            key: claim.key.clone(),
            requests,
            constraints,
            least,
        })
    }
}

struct Reader<'a> {
    snapshot: &'a Snapshot,
    selectors: &'a Selectors,
    claim: &'a ResourceClaim,
}

impl Reader<'_> {
    fn unsupported(&self, what: String) -> DraRefusal {
        DraRefusal::Unsupported {
            claim: self.claim.key.clone(),
            what,
        }
    }

    /// Class and request both have a say in which devices will do.
    fn wish(&self, name: String, ask: &DeviceAsk) -> Result<Wish, DraRefusal> {
        let Some(class) = self.snapshot.device_classes.get(&ask.class) else {
            return Err(DraRefusal::ClassMissing {
                claim: self.claim.key.clone(),
                request: name,
                class: ask.class.clone(),
            });
        };
        let mut conditions = Vec::new();
        let mut seen = BTreeSet::new();
        for selector in class.selectors.iter().chain(&ask.selectors) {
            let DeviceSelector::Cel(expression) = selector else {
                return Err(self.unsupported(format!("a selector of request {name:?} that is not CEL")));
            };
            if !seen.insert(expression) {
                continue;
            }
            let condition = self.selectors.read(expression);
            conditions.push(condition.map_err(|problem| DraRefusal::Selector {
                claim: self.claim.key.clone(),
                request: name.clone(),
                expression: expression.clone(),
                problem,
            })?);
        }
        let count = match &ask.count {
            DeviceCount::Exactly(count) => Some(*count),
            DeviceCount::All => None,
            DeviceCount::Unknown(mode) => {
                return Err(self.unsupported(format!("allocation mode {mode:?} of request {name:?}")));
            }
        };
        Ok(Wish {
            name,
            count,
            conditions,
            capacity: ask.capacity.clone(),
        })
    }
}
