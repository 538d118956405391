//! What a pool can buy, indexed for fast questions.
//!
//! A row is an instance type under one kind of offering: most types have one row. A type whose offerings change its capacity
//! has one for each change, and so has a type on which other daemons run in some zones than in others. Which rows suit a requirement set is worked out label by label, once per set; which
//! rows have room for an amount is looked up in sorted lists, resource by resource.

use std::ops::Range;

use model::{InstanceType, LabelKey, Offering, Requirements, Resources, requirement::Values};
use model::{Requirement, pod::HostPort};
use rustc_hash::FxHashMap;

use crate::{
    amounts::{Amounts, Dims},
    bits::Bits,
    crew::Load,
    states::{State, States},
};

/// Everything that one pool can buy.
#[derive(Debug)]
pub(crate) struct Market<'a> {
    pub rows: Vec<Row<'a>>,
    pub deals: Vec<Deal<'a>>,
    by_label: Labels,
    deals_by_label: Labels,
    rooms: Rooms,
    /// Ports that daemons take, and the rows on which they do.
    daemon_ports: Vec<(Vec<HostPort>, Bits)>,
    /// Some types are several rows because other daemons run under some of their offerings.
    pub parted: bool,
    views: FxHashMap<State, View>,
}

/// An instance type under one kind of offering.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub kind: &'a InstanceType,
    /// The position of the type in the pool's catalog.
    pub position: usize,
    /// What daemons take.
    pub daemons: Resources,
    /// What is left for pods.
    pub room: Amounts,
    /// The same in the cluster's own units, for messages.
    pub left: Resources,
    pub deals: Range<usize>,
    /// Offerings of the same type under which other daemons run, with their rows where those are for sale.
    pub elsewhere: Vec<(Option<usize>, &'a Offering)>,
}

/// One way to buy a row.
#[derive(Debug)]
pub(crate) struct Deal<'a> {
    pub row: usize,
    pub offering: &'a Offering,
}

/// What of the market suits a requirement set.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub rows: Bits,
    pub deals: Bits,
    /// The lowest price per row; infinite where nothing suits.
    pub prices: Vec<f64>,
}

/// An instance type with what its daemons need, before it is split into rows.
pub(crate) struct Shape<'a> {
    pub kind: &'a InstanceType,
    pub position: usize,
    /// What daemons take, wherever the machine is bought.
    pub load: Load,
    /// What they take under each offering; empty where that makes no difference.
    pub loads: Vec<Load>,
}

impl Shape<'_> {
    fn load(&self, offering: usize) -> &Load {
        self.loads.get(offering).unwrap_or(&self.load)
    }
}

impl<'a> Market<'a> {
    /// What the pool does not buy is left out.
    pub fn new(shapes: Vec<Shape<'a>>, dims: &Dims, buys: &dyn Fn(&Offering) -> bool) -> Self {
        let mut market = Self {
            rows: Vec::with_capacity(shapes.len()),
            deals: Vec::new(),
            by_label: Labels::default(),
            deals_by_label: Labels::default(),
            rooms: Rooms::default(),
            daemon_ports: Vec::new(),
            parted: false,
            views: FxHashMap::default(),
        };
        for shape in shapes {
            market.add(shape, dims, buys);
        }
        let rows = market.rows.iter();
        market.by_label = Labels::new(rows.map(|row| &row.kind.requirements));
        let deals = market.deals.iter();
        market.deals_by_label = Labels::new(deals.map(|deal| &deal.offering.requirements));
        market.rooms = Rooms::new(&market.rows, dims.len());
        market
    }

    fn add(&mut self, shape: Shape<'a>, dims: &Dims, buys: &dyn Fn(&Offering) -> bool) {
        let kind = shape.kind;
        let sold = |(_, offering): &(usize, &Offering)| offering.available && buys(offering);
        // Offerings with the same overrides and daemons share a row. There are few different ones.
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (number, offering) in kind.offerings.iter().enumerate().filter(sold) {
            let alike = |group: &&mut Vec<usize>| {
                let first = &kind.offerings[group[0]];
                first.capacity_override == offering.capacity_override
                    && first.overhead_override == offering.overhead_override
                    && shape.load(group[0]) == shape.load(number)
            };
            match groups.iter_mut().find(alike) {
                Some(group) => group.push(number),
                None => groups.push(vec![number]),
            }
        }
        let mut row_of: Vec<Option<usize>> = vec![None; shape.loads.len()];
        let mut made: Vec<(usize, usize)> = Vec::new();
        for group in groups {
            let load = shape.load(group[0]);
            let left = kind.allocatable_under(&kind.offerings[group[0]]).minus(&load.requests);
            // A machine that its daemons alone overdraw takes no pod at all.
            if left.is_overdrawn() {
                continue;
            }
            let row = self.rows.len();
            let first = self.deals.len();
            made.push((row, group[0]));
            for number in group {
                let offering = &kind.offerings[number];
                self.deals.push(Deal { row, offering });
                if let Some(known) = row_of.get_mut(number) {
                    *known = Some(row);
                }
            }
            self.rows.push(Row {
                kind,
                position: shape.position,
                daemons: load.requests.clone(),
                room: dims.supply(&left),
                left,
                deals: first..self.deals.len(),
                elsewhere: Vec::new(),
            });
            if !load.ports.is_empty() {
                let same = self.daemon_ports.iter_mut().find(|(ports, _)| *ports == load.ports);
                match same {
                    Some((_, rows)) => rows.insert(row),
                    None => self
                        .daemon_ports
                        .push((load.ports.clone(), std::iter::once(row).collect())),
                }
            }
        }
        self.parted |= !shape.loads.is_empty();
        for (row, first) in made {
            let others = (0..shape.loads.len()).filter(|number| shape.load(*number) != shape.load(first));
            self.rows[row].elsewhere = others.map(|number| (row_of[number], &kind.offerings[number])).collect();
        }
    }

    /// What suits a requirement set.
    pub fn view(&mut self, states: &States<'_>, state: State) -> &View {
        if !self.views.contains_key(&state) {
            let view = self.look(states.of_state(state));
            self.views.insert(state, view);
        }
        &self.views[&state]
    }

    /// What suits a requirement set that was looked at before.
    pub fn seen(&self, state: State) -> &View {
        &self.views[&state]
    }

    fn look(&mut self, requirements: &Requirements) -> View {
        let mut rows = Bits::first(self.rows.len());
        let mut deals = Bits::first(self.deals.len());
        for requirement in requirements.iter() {
            if let Some(suiting) = self.by_label.suiting(requirement) {
                rows.intersect_with(suiting);
            }
            if let Some(suiting) = self.deals_by_label.suiting(requirement) {
                deals.intersect_with(suiting);
            }
        }
        let mut sold = Bits::with_room(self.rows.len());
        let mut kept = Bits::with_room(self.deals.len());
        let mut prices = vec![f64::INFINITY; self.rows.len()];
        for index in deals.iter() {
            let deal = &self.deals[index];
            if rows.contains(deal.row) {
                kept.insert(index);
                sold.insert(deal.row);
                prices[deal.row] = prices[deal.row].min(deal.offering.price);
            }
        }
        View {
            rows: sold,
            deals: kept,
            prices,
        }
    }

    /// Removes the rows without room for an amount.
    pub fn keep_roomy(&self, need: &[i64], rows: &mut Bits) {
        self.rooms.keep(need, rows);
    }

    /// Removes the rows on which a daemon takes one of the ports.
    pub fn keep_free_ports(&self, ports: &[HostPort], rows: &mut Bits) {
        if ports.is_empty() {
            return;
        }
        for (taken, on) in &self.daemon_ports {
            if crate::rules::ports_clash(ports, taken) {
                rows.subtract(on);
            }
        }
    }

    /// The values that types of this pool have for a label, together with those rows; types that do not list it are
    /// left out.
    pub fn values_of(&self, key: &str) -> impl Iterator<Item = (&Values, &Bits)> {
        let label = self.by_label.0.get(key);
        label.into_iter().flat_map(|label| {
            label
                .values
                .iter()
                .map(|(requirement, rows)| (&requirement.values, rows))
        })
    }
}

/// For each label, who has which values.
#[derive(Debug, Default)]
struct Labels(FxHashMap<LabelKey, Label>);

#[derive(Debug, Default)]
struct Label {
    /// Different requirements on the label, and who has them.
    values: Vec<(Requirement, Bits)>,
    /// Who does not mention the label.
    silent: Bits,
    suiting: FxHashMap<Values, Bits>,
}

impl Labels {
    fn new<'r>(all: impl ExactSizeIterator<Item = &'r Requirements> + Clone) -> Self {
        let count = all.len();
        let mut labels: FxHashMap<LabelKey, Label> = FxHashMap::default();
        let mut numbers: FxHashMap<&Requirement, usize> = FxHashMap::default();
        for (index, requirements) in all.enumerate() {
            for requirement in requirements.iter() {
                let label = match labels.get_mut(&requirement.key) {
                    Some(label) => label,
                    None => labels.entry(requirement.key.clone()).or_insert_with(|| Label {
                        silent: Bits::first(count),
                        ..Label::default()
                    }),
                };
                label.silent.remove(index);
                let number = *numbers.entry(requirement).or_insert_with(|| {
                    label.values.push((requirement.clone(), Bits::with_room(count)));
                    label.values.len() - 1
                });
                label.values[number].1.insert(index);
            }
        }
        Self(labels)
    }

    /// Who can meet a requirement; nothing when nobody mentions its label.
    fn suiting(&mut self, requirement: &Requirement) -> Option<&Bits> {
        let label = self.0.get_mut(&requirement.key)?;
        if !label.suiting.contains_key(&requirement.values) {
            let mut suiting = label.silent.clone();
            for (theirs, who) in &label.values {
                let absent = theirs.operator().accepts_absence() && requirement.operator().accepts_absence();
                if absent || theirs.has_intersection(requirement) {
                    suiting.unite_with(who);
                }
            }
            label.suiting.insert(requirement.values.clone(), suiting);
        }
        label.suiting.get(&requirement.values)
    }
}

/// For each resource, the rows sorted by their room.
#[derive(Debug, Default)]
struct Rooms {
    words: usize,
    dims: Vec<Room>,
}

#[derive(Debug)]
struct Room {
    /// Ascending and different.
    sizes: Vec<i64>,
    /// For each size, the rows with at least that much, as words; one after another.
    roomy: Vec<u64>,
}

impl Rooms {
    fn new(rows: &[Row<'_>], dims: usize) -> Self {
        let words = Bits::with_room(rows.len()).words().len();
        let dim = |dim: usize| {
            let mut order: Vec<(i64, usize)> = rows.iter().enumerate().map(|(i, row)| (row.room[dim], i)).collect();
            order.sort_unstable();
            let mut sizes: Vec<i64> = order.iter().map(|(size, _)| *size).collect();
            sizes.dedup();
            let mut roomy = vec![0; words * sizes.len()];
            let mut with = Bits::with_room(rows.len());
            let mut rest = order.as_slice();
            for (index, size) in sizes.iter().enumerate().rev() {
                while let Some(((_, row), smaller)) = rest.split_last().filter(|((room, _), _)| room >= size) {
                    with.insert(*row);
                    rest = smaller;
                }
                roomy[index * words..(index + 1) * words].copy_from_slice(with.words());
            }
            Room { sizes, roomy }
        };
        Self {
            words,
            dims: (0..dims).map(dim).collect(),
        }
    }

    fn keep(&self, need: &[i64], rows: &mut Bits) {
        for (room, need) in self.dims.iter().zip(need) {
            // Everybody has room for nothing.
            if *need <= 0 {
                continue;
            }
            let index = room.sizes.partition_point(|size| size < need);
            if index == room.sizes.len() {
                *rows = Bits::with_room(0);
                return;
            }
            rows.intersect_with_words(&room.roomy[index * self.words..(index + 1) * self.words]);
        }
    }
}
