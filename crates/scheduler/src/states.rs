//! What a planned machine's labels may still be, as numbers.
//!
//! Thousands of open machines share a handful of different requirement sets, and pods of thousands share a handful of
//! demands. Each different set is kept once; that one narrowed by the other gives a third is worked out once and looked
//! up afterwards.

use model::{
    LabelKey, LabelValue, Requirement, Requirements, Vocabulary,
    requirements::{AllowUndefined, Incompatible},
};
use rustc_hash::FxHashMap;

/// A requirement set that some planned machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct State(u32);

/// A requirement set that somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Demand(u32);

impl State {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Demand {
    /// Asks for nothing.
    pub const NONE: Demand = Demand(0);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug)]
pub(crate) struct States<'a> {
    vocabulary: &'a Vocabulary,
    states: Interned,
    demands: Interned,
    /// `narrowed[demand][state]`.
    narrowed: Vec<FxHashMap<State, Option<State>>>,
}

/// Different values, numbered in the order of their appearance.
#[derive(Debug, Default)]
struct Interned {
    all: Vec<Requirements>,
    numbers: FxHashMap<Requirements, u32>,
}

impl Interned {
    fn number(&mut self, requirements: Requirements) -> u32 {
        if let Some(known) = self.numbers.get(&requirements) {
            return *known;
        }
        let number = u32::try_from(self.all.len()).expect("fewer requirement sets than four billion");
        self.numbers.insert(requirements.clone(), number);
        self.all.push(requirements);
        number
    }
}

impl<'a> States<'a> {
    pub fn new(vocabulary: &'a Vocabulary) -> Self {
        let mut states = Self {
            vocabulary,
            states: Interned::default(),
            demands: Interned::default(),
            narrowed: Vec::new(),
        };
        states.demand(Requirements::default());
        states
    }

    pub fn state(&mut self, requirements: Requirements) -> State {
        State(self.states.number(requirements))
    }

    pub fn demand(&mut self, requirements: Requirements) -> Demand {
        let demand = Demand(self.demands.number(requirements));
        if self.narrowed.len() <= demand.index() {
            self.narrowed.push(FxHashMap::default());
        }
        demand
    }

    /// One label with one value.
    pub fn demand_value(&mut self, key: &LabelKey, value: &LabelValue) -> Demand {
        self.demand(std::iter::once(Requirement::one_of(key.as_str(), [value.clone()])).collect())
    }

    pub fn of_state(&self, state: State) -> &Requirements {
        &self.states.all[state.index()]
    }

    pub fn of_demand(&self, demand: Demand) -> &Requirements {
        &self.demands.all[demand.index()]
    }

    /// Whether machines in this state get a label at all: it is asked for, or the provider sets it.
    pub fn will_have(&self, state: State, key: &LabelKey) -> bool {
        self.vocabulary.is_well_known(key.as_str()) || self.of_state(state).contains(key.as_str())
    }

    /// The state after the demand has been met, or nothing when it cannot be met.
    pub fn narrow(&mut self, state: State, demand: Demand) -> Option<State> {
        if demand == Demand::NONE {
            return Some(state);
        }
        if let Some(known) = self.narrowed[demand.index()].get(&state) {
            return *known;
        }
        let (ours, theirs) = (self.of_state(state), self.of_demand(demand));
        let allow = AllowUndefined::WellKnown(self.vocabulary);
        let narrowed = ours.is_compatible(theirs, allow).then(|| {
            let mut both = ours.clone();
            both.merge(theirs);
            both
        });
        let narrowed = narrowed.map(|both| self.state(both));
        self.narrowed[demand.index()].insert(state, narrowed);
        narrowed
    }

    /// Why the demand cannot be met.
    pub fn conflict(&self, state: State, demand: Demand) -> Option<Incompatible> {
        let allow = AllowUndefined::WellKnown(self.vocabulary);
        self.of_state(state).compatible(self.of_demand(demand), allow).err()
    }
}
