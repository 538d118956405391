//! From a planned machine to a launch: the cheapest instance types, and what the claim will say.

use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeSet,
    sync::Arc,
};

use model::{
    InstanceType, InstanceTypeName, LabelValue, Labels, Offering, Requirement, Requirements, Resources, Snapshot,
    vocabulary,
};
use rustc_hash::FxHashMap;

use crate::{
    bits::Bits,
    market::{Market, View},
    open::Open,
    plan::{Choice, Launch},
    problem::Problem,
    refusal::Lacking,
    round::MinValuesPolicy,
    states::State,
    template::{STAND_INS, named},
    variety::Variety,
};

/// Makes launches. Machines that may become the same things share what their claims say.
#[derive(Default)]
pub(crate) struct Finisher {
    drafts: FxHashMap<(usize, State, Bits), Result<Draft, Vec<Lacking>>>,
}

/// What launches with the same possibilities have in common.
#[derive(Clone)]
struct Draft {
    requirements: Arc<Requirements>,
    instance_types: Arc<[InstanceTypeName]>,
    labels: Arc<Labels>,
    daemons: Resources,
    choice: Choice,
}

impl Finisher {
    /// Sorts the instance types by price and keeps the cheapest. If those alone lack variety that the pool demands,
    /// nothing is launched: the labels they lack are the error.
    pub fn finish(&mut self, problem: &mut Problem<'_>, open: &Open) -> Result<Launch, Vec<Lacking>> {
        let draft = if open.held.is_empty() && open.lowered.is_none() {
            let key = (open.template, open.state, open.rows.clone());
            let known = self.drafts.entry(key);
            known.or_insert_with(|| draft(problem, open)).clone()?
        } else {
            draft(problem, open)?
        };
        let members = open.pods.iter().map(|seat| &problem.members[seat.member]);
        let pods: Vec<_> = members.clone().map(|member| member.pod.key.clone()).collect();
        let mut requests = Resources::default();
        for member in members {
            requests.add_assign(&problem.classes.all[member.class].requests);
        }
        Ok(Launch {
            pool: problem.templates[open.template].pool.name.clone(),
            requirements: draft.requirements,
            instance_types: draft.instance_types.clone(),
            requests: requests.plus(&draft.daemons),
            pods,
            labels: draft.labels,
            choice: draft.choice,
            min_values_relaxed: open.lowered.is_some(),
            device_drivers: devices(problem, open, &draft.instance_types),
        })
    }
}

/// The drivers of the devices that the machine's pods were promised. What it cannot become any more holds none.
fn devices(problem: &mut Problem<'_>, open: &Open, names: &[InstanceTypeName]) -> BTreeSet<Arc<str>> {
    let Some(devices) = problem.devices.as_mut().filter(|_| open.has_devices) else {
        return BTreeSet::new();
    };
    let rows = &problem.templates[open.template].market.rows;
    let kinds = open.rows.iter().map(|row| rows[row].kind);
    let kinds: Vec<&InstanceType> = kinds.filter(|kind| names.contains(&kind.name)).collect();
    devices.keep_kinds(open.id, &kinds);
    devices.drivers_of(open.id)
}

fn draft(problem: &mut Problem<'_>, open: &Open) -> Result<Draft, Vec<Lacking>> {
    let mut state = open.state;
    if !open.held.is_empty() {
        let requirements = reserved(problem.snapshot, problem.states.of_state(state), open);
        state = problem.states.state(requirements);
    }
    if let Some(away) = away_from_daemons(problem, open, state) {
        let mut narrowed = problem.states.of_state(state).clone();
        narrowed.merge(&away);
        state = problem.states.state(narrowed);
    }
    let template = &mut problem.templates[open.template];
    let view = template.market.view(&problem.states, state).clone();
    let market = &template.market;
    let requirements = problem.states.of_state(state);
    let fitting = open.rows.and(&view.rows);
    let fits_everywhere = |row: &usize| unfit(market, *row, &open.rows, requirements).next().is_none();
    let mut rows: Vec<usize> = fitting.iter().filter(fits_everywhere).collect();
    rows.sort_by(|a, b| by_price(market, &view, *a, *b));
    // A type that several kinds of offerings sell is listed once.
    let mut seen = Bits::default();
    rows.retain(|row| {
        let position = market.rows[*row].position;
        let new = !seen.contains(position);
        seen.insert(position);
        new
    });
    let options = &problem.round.options;
    rows.truncate(options.max_instance_types);
    let kept: Bits = rows.iter().copied().collect();
    let variety = open.lowered.as_ref().unwrap_or(&template.variety);
    if options.min_values_policy == MinValuesPolicy::Strict {
        let short = variety.lacking(&kept);
        if !short.is_empty() {
            return Err(named(short));
        }
    }
    let mut requirements = problem.states.of_state(state).clone();
    for (key, least) in open.lowered.iter().flat_map(Variety::demands) {
        let lowered = requirements.remove(key.as_str());
        requirements.extend(lowered.map(|requirement| requirement.with_min_values(Some(least))));
    }
    let labels = template.pool.claim_labels(&requirements, &problem.snapshot.vocabulary);
    let instance_types: Arc<[InstanceTypeName]> = rows.iter().map(|row| market.rows[*row].kind.name.clone()).collect();
    let deals = view.deals.iter().map(|deal| &market.deals[deal]);
    let capacity_types = deals
        .filter(|deal| kept.contains(deal.row))
        .map(|deal| LabelValue::from(deal.offering.capacity_type.as_str()))
        .collect();
    Ok(Draft {
        requirements: Arc::new(claim_requirements(requirements, &instance_types, capacity_types)),
        choice: choice(market, rows[0], &view.deals),
        instance_types,
        labels: Arc::new(labels),
        daemons: least_daemons(market, &kept),
    })
}

/// Offerings of a row's type that the requirements admit and under which the machine would have too little room, because more
/// daemons run there.
fn unfit<'m, 'a>(
    market: &'m Market<'a>,
    row: usize,
    fitting: &'m Bits,
    requirements: &'m Requirements,
) -> impl Iterator<Item = &'a Offering> + use<'m, 'a> {
    let elsewhere = market.rows[row].elsewhere.iter();
    let too_small = elsewhere.filter(|(row, _)| row.is_none_or(|row| !fitting.contains(row)));
    too_small
        .map(|(_, offering)| *offering)
        .filter(|offering| offering.admitted_by(requirements))
}

/// What the claim has to say so that the cheapest type is not bought where daemons leave too little room, as when one runs
/// in a single zone. The label is chosen that keeps the lowest price, then the most offerings.
fn away_from_daemons(problem: &mut Problem<'_>, open: &Open, state: State) -> Option<Requirements> {
    let market = &mut problem.templates[open.template].market;
    if !market.parted {
        return None;
    }
    let view = market.view(&problem.states, state).clone();
    let market = &problem.templates[open.template].market;
    let requirements = problem.states.of_state(state);
    let fitting = open.rows.and(&view.rows);
    let best = fitting.iter().min_by(|a, b| by_price(market, &view, *a, *b))?;
    let shunned: Vec<&Offering> = unfit(market, best, &open.rows, requirements).collect();
    if shunned.is_empty() {
        return None;
    }
    let sold = || view.deals.iter().map(|deal| &market.deals[deal]);
    let of_best = || sold().filter(|deal| deal.row == best).map(|deal| deal.offering);
    let without = |key: &str| {
        let bad: BTreeSet<&LabelValue> = shunned.iter().filter_map(|offering| value(offering, key)).collect();
        let good = move |offering: &&Offering| value(offering, key).is_some_and(|value| !bad.contains(value));
        let price = of_best()
            .filter(&good)
            .map(|offering| offering.price)
            .min_by(f64::total_cmp)?;
        let values = sold()
            .map(|deal| deal.offering)
            .filter(&good)
            .filter_map(|offering| value(offering, key));
        let kept = Requirement::one_of(key, values.cloned().collect::<BTreeSet<_>>());
        Some((price, Reverse(of_best().filter(&good).count()), kept))
    };
    let keys = [vocabulary::ZONE, vocabulary::CAPACITY_TYPE].into_iter();
    let separating = keys
        .filter_map(without)
        .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    if let Some((.., kept)) = separating {
        return Some(std::iter::once(kept).collect());
    }
    // No one label tells them apart; all labels of one offering do, because which daemons run there depends on nothing else.
    Some(cheapest(market, best, &view.deals).requirements.clone())
}

/// The cheapest first, and of equals the first by name.
fn by_price(market: &Market<'_>, view: &View, a: usize, b: usize) -> Ordering {
    let name = |row: usize| &market.rows[row].kind.name;
    let prices = view.prices[a].total_cmp(&view.prices[b]);
    prices.then_with(|| name(a).cmp(name(b)))
}

fn value<'o>(offering: &'o Offering, key: &str) -> Option<&'o LabelValue> {
    offering.requirements.get(key).single()
}

/// What a machine with a place in a reservation has to be: reserved, and nothing else.
fn reserved(snapshot: &Snapshot, requirements: &Requirements, open: &Open) -> Requirements {
    let mut narrowed = requirements.clone();
    let kept = narrowed
        .remove(vocabulary::CAPACITY_TYPE)
        .and_then(|requirement| requirement.min_values);
    narrowed.replace(Requirement::one_of(vocabulary::CAPACITY_TYPE, ["reserved"]).with_min_values(kept));
    if let Some(key) = &snapshot.vocabulary.reservation_id {
        narrowed.replace(Requirement::one_of(key.as_str(), open.held.iter().cloned()));
    }
    narrowed
}

/// The cheapest of the deals for a row. Among equal prices the order of capacity types and zones decides.
fn cheapest<'a>(market: &Market<'a>, row: usize, deals: &Bits) -> &'a Offering {
    let sold = market.rows[row].deals.clone().filter(|deal| deals.contains(*deal));
    let best = sold.map(|deal| market.deals[deal].offering).min_by(|a, b| {
        let order = (a.capacity_type, &a.zone).cmp(&(b.capacity_type, &b.zone));
        a.price.total_cmp(&b.price).then(order)
    });
    best.expect("a row that suits has a deal that suits")
}

fn choice(market: &Market<'_>, row: usize, deals: &Bits) -> Choice {
    let best = cheapest(market, row, deals);
    Choice {
        instance_type: market.rows[row].kind.name.clone(),
        zone: best.zone.clone(),
        capacity_type: best.capacity_type,
        price: best.price,
    }
}

/// What daemons ask for at least, whichever of the types is launched.
fn least_daemons(market: &Market<'_>, rows: &Bits) -> Resources {
    let mut daemons = rows.iter().map(|row| &market.rows[row].daemons);
    let mut least = daemons.next().cloned().unwrap_or_default();
    for other in daemons {
        least.min_with(other);
    }
    least.without_zeros()
}

fn claim_requirements(
    mut requirements: Requirements,
    instance_types: &[InstanceTypeName],
    capacity_types: BTreeSet<LabelValue>,
) -> Requirements {
    for key in STAND_INS {
        requirements.remove(key);
    }
    let names = instance_types.iter().map(|name| name.as_str().into()).collect();
    for (key, values) in [
        (vocabulary::INSTANCE_TYPE, names),
        (vocabulary::CAPACITY_TYPE, capacity_types),
    ] {
        let least = requirements
            .requirement(key)
            .and_then(|requirement| requirement.min_values);
        requirements.replace(Requirement::one_of(key, values).with_min_values(least));
    }
    requirements
}
