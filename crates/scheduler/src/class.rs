//! Pods that are alike are one question asked many times.
//!
//! A class is what the rules can tell apart. Its pods share the answers to everything that does not depend on the
//! moment; what is left for a single pod is to look where there is room now.

use std::sync::Arc;

use model::{Pod, PodKey, Resources, Toleration, pod::HostPort};
use rustc_hash::FxHashMap;

use crate::{
    amounts::Amounts,
    bits::Bits,
    dra::PodClaims,
    states::Demand,
    topology::{Carried, Ties},
};

/// What a pod needs, its neighbours aside. Different classes often share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Needs {
    pub amounts: Amounts,
    pub demand: Demand,
    /// The demand without preferences.
    pub strict: Demand,
    pub tolerations: Vec<Toleration>,
    pub ports: Vec<HostPort>,
    /// Where the volumes can be, one alternative after the other.
    pub volumes: Vec<Demand>,
    /// The pod comes from a machine that would be given up for it: machines that are not settled do not take it.
    pub moving: bool,
    /// The pod itself, where it claims devices: what devices it finds is nobody else's business.
    pub devices: Option<PodKey>,
}

/// Needs together with what has turned out about them in the course of a round.
///
/// A machine never gets emptier and never wider, so whoever had no room once has none later.
#[derive(Debug)]
pub(crate) struct Core {
    pub needs: Needs,
    /// Machines that may have room; worked out when they are first asked for.
    pub machines: Option<Bits>,
    /// Where the search among them begins.
    pub full: Full,
    /// Open launches that have no room.
    pub closed: Bits,
    /// Pools that launch nothing for it.
    pub barred: Bits,
    /// Pools whose taints it tolerates, once that is known.
    pub tolerant: Vec<Option<bool>>,
}

/// So many words of machines, from the first on, have no room. Unlike what is known of single machines this holds for those
/// that are filled for the time being, too: until room comes back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Full {
    pub words: usize,
    /// How often room had come back when this was found out.
    pub since: u64,
}

/// A class in one state of its preferences.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub core: usize,
    pub carried: Carried,
    /// The domains that the pods insist on, by the number of the label.
    pub own: Vec<(usize, Bits)>,
}

/// Pods that the rules cannot tell apart.
#[derive(Debug)]
pub(crate) struct Class {
    pub variants: Vec<Variant>,
    pub ties: Ties,
    pub requests: Arc<Resources>,
    /// Nothing that happens later in the round can help.
    pub hopeless: bool,
    /// How many pods had been placed when the class failed last.
    pub failed_at: Option<usize>,
}

/// A pod of the round.
#[derive(Clone, Debug)]
pub(crate) struct Member<'a> {
    pub pod: &'a Pod,
    pub class: usize,
    /// Volume claims with their drivers, for the limits of nodes.
    pub attached: Arc<[(Arc<str>, PodKey)]>,
    /// Claims for devices, if there are any.
    pub devices: Option<Arc<PodClaims>>,
}

/// All classes of a round.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    pub cores: Vec<Core>,
    pub all: Vec<Class>,
    core_numbers: FxHashMap<Needs, usize>,
    numbers: FxHashMap<(Vec<Variant>, Ties), usize>,
}

impl Classes {
    pub fn core(&mut self, needs: Needs) -> usize {
        if let Some(known) = self.core_numbers.get(&needs) {
            return *known;
        }
        self.core_numbers.insert(needs.clone(), self.cores.len());
        self.cores.push(Core {
            needs,
            machines: None,
            full: Full::default(),
            closed: Bits::default(),
            barred: Bits::default(),
            tolerant: Vec::new(),
        });
        self.cores.len() - 1
    }

    pub fn class(&mut self, variants: Vec<Variant>, ties: Ties, requests: &Arc<Resources>) -> usize {
        let identity = (variants, ties);
        if let Some(known) = self.numbers.get(&identity) {
            return *known;
        }
        let number = self.all.len();
        self.all.push(Class {
            variants: identity.0.clone(),
            ties: identity.1.clone(),
            requests: requests.clone(),
            hopeless: false,
            failed_at: None,
        });
        self.numbers.insert(identity, number);
        number
    }
}

impl Class {
    /// Whether what other pods do can change the answer later in the round.
    pub fn is_social(&self) -> bool {
        !self.ties.repelled.is_empty() || self.variants.iter().any(|variant| !variant.carried.rules.is_empty())
    }
}
