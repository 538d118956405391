//! One rule and its counters.

use model::{Requirements, Snapshot, Taint, Toleration, requirements::AllowUndefined, taint};
use rustc_hash::FxHashMap;

use super::{Audience, Axis, Keys};
use crate::{bits::Bits, machine::Look};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    Spread { max_skew: u32, min_domains: Option<u32> },
    Affinity,
    AntiAffinity,
}

/// Which machines take part in a spread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Filter {
    /// One of them has to hold for the machine's labels. None at all lets every machine take part.
    pub alternatives: Vec<Requirements>,
    /// When set, only machines whose taints these tolerate.
    pub tolerations: Option<Vec<Toleration>>,
}

impl Filter {
    pub fn admits(&self, taints: &[Taint], labels: &Requirements) -> bool {
        let labelled = self.alternatives.is_empty()
            || self
                .alternatives
                .iter()
                .any(|wanted| labels.is_compatible(wanted, AllowUndefined::Nothing));
        labelled && self.tolerates(taints)
    }

    /// A machine whose labels are still open takes part when it will, whatever it becomes.
    pub fn admits_look(&self, snapshot: &Snapshot, look: &Look) -> bool {
        let mut ways = self.alternatives.iter();
        let labelled = self.alternatives.is_empty() || ways.any(|wanted| look.labels.meet(snapshot, wanted));
        labelled && self.tolerates(&look.taints)
    }

    pub fn tolerates(&self, taints: &[Taint]) -> bool {
        let tolerations = self.tolerations.as_ref();
        tolerations.is_none_or(|tolerations| taint::untolerated(taints, tolerations).is_none())
    }

    pub fn admits_all(&self) -> bool {
        self.tolerations.is_none() && self.alternatives.iter().all(Requirements::is_empty)
    }
}

/// Rules that are equal in all of this share their counters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub rule: Rule,
    pub axis: Axis,
    pub audience: Audience,
    /// Only spreads have one.
    pub filter: Option<Filter>,
    /// Counts the carriers of an anti-affinity instead of those it selects.
    pub inverse: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub identity: Identity,
    /// Domains of the label that count at all.
    pub known: Bits,
    /// Pods per domain of the label.
    pub counts: Vec<u32>,
    /// Pods per host, where there are any.
    hosts: FxHashMap<usize, u32>,
    /// Hosts with at least one pod.
    taken: Bits,
    /// Hosts that have as many pods as the skew allows.
    full: Bits,
    /// Hosts that have more pods than the skew allows.
    over: Bits,
    total: u64,
}

impl Group {
    /// Domains count that pools can bring: all of them, or only those of pools whose taints are put up with if taints
    /// matter to the rule.
    pub fn new(identity: Identity, keys: &Keys, pool_taints: &[Vec<Taint>]) -> Self {
        let mut known = Bits::default();
        let mut domains = 0;
        if let Axis::Key(key) = identity.axis {
            domains = keys[key].values.len();
            for (pool, taints) in keys[key].pools.iter().zip(pool_taints) {
                if identity.filter.as_ref().is_none_or(|filter| filter.tolerates(taints)) {
                    known.unite_with(pool);
                }
            }
        }
        Self {
            identity,
            known,
            counts: vec![0; domains],
            hosts: FxHashMap::default(),
            taken: Bits::default(),
            full: Bits::default(),
            over: Bits::default(),
            total: 0,
        }
    }

    pub fn count(&mut self, domain: usize) {
        self.counts[domain] += 1;
        self.known.insert(domain);
        self.total += 1;
    }

    pub fn count_host(&mut self, host: usize) {
        let count = self.hosts.entry(host).or_default();
        *count += 1;
        self.taken.insert(host);
        if let Rule::Spread { max_skew, .. } = self.identity.rule {
            if *count >= max_skew {
                self.full.insert(host);
            }
            if *count > max_skew {
                self.over.insert(host);
            }
        }
        self.total += 1;
    }

    /// One pod less in a domain.
    pub fn uncount(&mut self, domain: usize) {
        self.counts[domain] -= 1;
        self.total -= 1;
    }

    /// One pod less on a host.
    pub fn uncount_host(&mut self, host: usize) {
        let count = self.hosts.get_mut(&host).expect("only what was counted is taken back");
        *count -= 1;
        let left = *count;
        self.total -= 1;
        if left == 0 {
            self.hosts.remove(&host);
            self.taken.remove(host);
        }
        if let Rule::Spread { max_skew, .. } = self.identity.rule {
            if left < max_skew {
                self.full.remove(host);
            }
            if left <= max_skew {
                self.over.remove(host);
            }
        }
    }

    /// Whether anything that the rule is about exists at all.
    pub fn is_void(&self) -> bool {
        self.total == 0
    }

    /// The domains that this group allows. `own` is what the pod itself insists on.
    pub fn ask(&self, counts_self: bool, own: Option<&Bits>) -> Bits {
        let mut within = self.known.clone();
        if let Some(own) = own {
            within.intersect_with(own);
        }
        match self.identity.rule {
            Rule::Spread { max_skew, min_domains } => {
                let fewest = within.iter().map(|domain| self.counts[domain]).min().unwrap_or(0);
                let enough = min_domains.is_none_or(|least| within.len() >= least as usize);
                let floor = if enough { fewest } else { 0 };
                let most = u64::from(floor) + u64::from(max_skew);
                self.known
                    .iter()
                    .filter(|domain| u64::from(self.counts[*domain]) + u64::from(counts_self) <= most)
                    .collect()
            }
            Rule::Affinity => {
                let inhabited: Bits = within.iter().filter(|domain| self.counts[*domain] > 0).collect();
                // The first of its kind goes where it likes.
                if inhabited.is_empty() && counts_self {
                    within
                } else {
                    inhabited
                }
            }
            Rule::AntiAffinity => within.iter().filter(|domain| self.counts[*domain] == 0).collect(),
        }
    }

    /// Whether this group keeps a pod off hosts, or to hosts; nothing when any host will do.
    pub fn ask_hosts(&self, counts_self: bool) -> Option<HostRule> {
        match self.identity.rule {
            Rule::Spread { .. } if counts_self => Some(HostRule::NotFull),
            Rule::Spread { .. } => Some(HostRule::NotOver),
            Rule::Affinity if self.is_void() && counts_self => None,
            Rule::Affinity => Some(HostRule::Taken),
            Rule::AntiAffinity => Some(HostRule::NotTaken),
        }
    }

    /// Those of 64 hosts that will do.
    pub fn hosts(&self, rule: HostRule, word: usize) -> u64 {
        match rule {
            HostRule::NotFull => !self.full.word(word),
            HostRule::NotOver => !self.over.word(word),
            HostRule::NotTaken => !self.taken.word(word),
            HostRule::Taken => self.taken.word(word),
        }
    }
}

/// Which hosts will do, for one pod and one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostRule {
    NotFull,
    NotOver,
    NotTaken,
    Taken,
}
