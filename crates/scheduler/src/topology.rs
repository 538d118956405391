//! Rules between pods: spreads, affinity and anti-affinity, as counters that many pods share.
//!
//! A group is one rule with its counters: how many of the pods it selects are in which domain. Deployments of a thousand
//! replicas share one group. Two kinds look at it: pods that carry the rule ask it where they may go, and pods that it
//! selects are counted. A required anti-affinity also works backwards: what it selects must keep away from its carriers,
//! so it has an inverse group that counts carriers and is asked by whom it selects.

mod audience;
mod axis;
mod census;
mod group;

use model::{
    Pod, Snapshot, Taint, Toleration,
    pod::{LabelSelector, PodTerm, TopologySpread},
    requirement::Values,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

pub(crate) use audience::Audience;
pub(crate) use axis::{Axis, Key, Keys};
pub(crate) use census::take as take_census;
pub(crate) use group::{Filter, Group, HostRule, Identity, Rule};

use self::audience::Selection;
use crate::bits::{Bits, WORD};

/// The number of a group.
pub(crate) type GroupId = usize;

/// All rules of a round.
#[derive(Debug)]
pub(crate) struct Topology {
    pub keys: Keys,
    pub groups: Vec<Group>,
    /// By the pool's position.
    pool_taints: Vec<Vec<Taint>>,
    numbers: FxHashMap<Identity, GroupId>,
    selection: Selection,
}

/// How a pod and the groups are related, whatever its preferences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ties {
    /// Groups that count the pod.
    pub counted: Vec<GroupId>,
    /// Inverse groups that keep the pod away from their carriers.
    pub repelled: Vec<GroupId>,
}

/// Which groups a pod asks, in one state of its preferences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Carried {
    /// With the answer whether the group counts the pod itself.
    pub rules: Vec<(GroupId, bool)>,
    /// Inverse groups in which the pod is a carrier.
    pub repels: Vec<GroupId>,
}

impl Topology {
    pub fn new(keys: Keys, pool_taints: Vec<Vec<Taint>>) -> Self {
        Self {
            keys,
            groups: Vec::new(),
            pool_taints,
            numbers: FxHashMap::default(),
            selection: Selection::default(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    fn group(&mut self, identity: Identity) -> GroupId {
        if let Some(known) = self.numbers.get(&identity) {
            return *known;
        }
        let number = self.groups.len();
        self.selection.add(number, &identity.audience);
        self.groups
            .push(Group::new(identity.clone(), &self.keys, &self.pool_taints));
        self.numbers.insert(identity, number);
        number
    }

    /// The group of a spread.
    pub fn spread(&mut self, pod: &Pod, spread: &TopologySpread, filter: Filter) -> GroupId {
        let selector = spread.selector.as_ref().map(|selector| {
            let mut requirements = selector.requirements.clone();
            for key in &spread.match_label_keys {
                if let Some(value) = pod.shape.labels.get(key.as_str()) {
                    requirements.push(model::Requirement::of(
                        key.as_str(),
                        Values::Only([value.clone()].into()),
                    ));
                }
            }
            LabelSelector { requirements }
        });
        let axis = self.keys.axis(&spread.topology_key);
        self.group(Identity {
            rule: Rule::Spread {
                max_skew: spread.max_skew,
                min_domains: spread.min_domains,
            },
            axis,
            audience: Audience::in_namespace(&pod.key.namespace, selector),
            filter: Some(filter),
            inverse: false,
        })
    }

    /// The group of an affinity or anti-affinity term, or its inverse.
    pub fn term(&mut self, snapshot: &Snapshot, pod: &Pod, term: &PodTerm, rule: Rule, inverse: bool) -> GroupId {
        let axis = self.keys.axis(&term.topology_key);
        self.group(Identity {
            rule,
            axis,
            audience: Audience::of_term(snapshot, pod, term),
            filter: None,
            inverse,
        })
    }

    /// The groups that select a pod.
    pub fn ties(&self, pod: &Pod) -> Ties {
        let mut ties = Ties::default();
        for number in self.selection.of(&pod.key.namespace, &pod.shape.labels) {
            if self.groups[number].identity.inverse {
                ties.repelled.push(number);
            } else {
                ties.counted.push(number);
            }
        }
        ties
    }

    pub fn selects(&self, group: GroupId, pod: &Pod) -> bool {
        let audience = &self.groups[group].identity.audience;
        audience.includes(&pod.key.namespace, &pod.shape.labels)
    }
}

/// Where a pod may go, as far as the groups on one label are concerned.
#[derive(Clone, Debug)]
pub(crate) struct Allowed {
    pub key: usize,
    pub domains: Bits,
    /// The spread whose fullest domains come last, if there is one.
    pub spread: Option<GroupId>,
    /// The pod has a rule of its own on this label, or somebody keeps it away. Otherwise it is only counted, and a
    /// machine for which the label means nothing will do.
    pub binding: bool,
}

/// Which hosts will do, as far as the groups on the host name are concerned. Kept as questions to these groups: a set of
/// hosts is as large as the cluster, and most pods are tried on a few of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllowedHosts(SmallVec<[(GroupId, HostRule); 4]>);

impl AllowedHosts {
    /// Those of 64 hosts that will do.
    pub fn word(&self, topology: &Topology, word: usize) -> u64 {
        let rules = self.0.iter();
        rules.fold(u64::MAX, |hosts, (group, rule)| {
            hosts & topology.groups[*group].hosts(*rule, word)
        })
    }

    pub fn admit(&self, topology: &Topology, host: usize) -> bool {
        self.word(topology, host / WORD) & (1 << (host % WORD)) != 0
    }

    /// Whether only hosts will do that are known.
    pub fn are_known(&self) -> bool {
        self.0.iter().any(|(_, rule)| *rule == HostRule::Taken)
    }
}

/// What the groups say to a pod.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub keys: Vec<Allowed>,
    pub hosts: AllowedHosts,
}

impl Topology {
    /// Asks every group that has a say. The first group that leaves no domain at all is the error.
    ///
    /// `domains` tells which values of a label the pod itself insists on.
    pub fn ask(
        &self,
        ties: &Ties,
        carried: &Carried,
        domains: impl Fn(usize) -> Option<Bits>,
    ) -> Result<Answer, GroupId> {
        let mut answer = Answer::default();
        let repelled = ties.repelled.iter().map(|group| (*group, true));
        for (number, counts_self) in carried.rules.iter().copied().chain(repelled) {
            let group = &self.groups[number];
            match group.identity.axis {
                Axis::Host => {
                    let rule = group.ask_hosts(counts_self);
                    answer.hosts.0.extend(rule.map(|rule| (number, rule)));
                }
                Axis::Key(key) => {
                    let own = domains(key);
                    let allowed = group.ask(counts_self, own.as_ref());
                    let spread = matches!(group.identity.rule, Rule::Spread { .. }).then_some(number);
                    let all = match answer.keys.iter_mut().find(|known| known.key == key) {
                        Some(known) => {
                            known.domains.intersect_with(&allowed);
                            known.spread = known.spread.or(spread);
                            &known.domains
                        }
                        None => {
                            answer.keys.push(Allowed {
                                key,
                                domains: allowed,
                                spread,
                                binding: true,
                            });
                            &answer.keys[answer.keys.len() - 1].domains
                        }
                    };
                    if all.is_empty() {
                        return Err(number);
                    }
                }
            }
        }
        for number in ties.counted.iter().chain(&carried.repels) {
            let Axis::Key(key) = self.groups[*number].identity.axis else {
                continue;
            };
            if answer.keys.iter().all(|known| known.key != key) {
                answer.keys.push(Allowed {
                    key,
                    domains: Bits::first(self.keys[key].values.len()),
                    spread: None,
                    binding: false,
                });
            }
        }
        Ok(answer)
    }
}

/// The tolerations of a pod that a group remembers: in an order of their own, so that equal sets are equal.
pub(crate) fn sorted(tolerations: &[Toleration]) -> Vec<Toleration> {
    let mut sorted = tolerations.to_vec();
    sorted.sort();
    sorted.dedup();
    sorted
}
