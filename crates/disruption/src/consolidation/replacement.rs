//! What may be launched in the place of nodes: only what is reliably cheaper.
//!
//! A launch lists many instance types and the cloud chooses. So every type on the list has to be cheaper even in the
//! dearest zone that it may come up in; the others are struck off.

use std::{collections::BTreeSet, sync::Arc};

use model::{
    CapacityType, InstanceType, InstanceTypeName, LabelKey, LabelValue, Requirement, Requirements, vocabulary,
};
use scheduler::{Choice, Launch};

use crate::{
    Candidate, Prices,
    prices::{cheapest, may_cost_less, paid_as, worst},
    stay::Why,
};

/// As many cheaper types as every launch in the place of a single spot node needs: with fewer, the next interruption would
/// soon bring back what was given up.
const SPOT_VARIETY: usize = 15;

/// A replacement has to save at least this share of its own price. For a few minutes both old and new nodes are paid
/// for, and pods start anew; three minutes in an hour are a twentieth. Without a floor, prices that tremble would keep
/// nodes moving.
const LEAST_SAVING: f64 = 0.05;

/// What launches are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Against {
    /// These nodes alone. Two machines are not exchanged for one of them: giving up the other would do.
    Themselves,
    /// Every other choice of nodes to keep, so that keeping one of these has been considered.
    AllEnds,
}

/// The launches with every type struck off that may cost too much, in the place of these nodes.
pub(crate) fn cheaper(
    launches: Vec<Launch>,
    sources: &[&Candidate],
    against: Against,
    prices: &Prices<'_>,
    spot_to_spot: bool,
) -> Result<Vec<Launch>, Why> {
    let price: f64 = sources.iter().map(|source| source.price).sum();
    let not_cheaper = |replacement: Option<f64>| Why::NotCheaper { price, replacement };
    let terms = Terms {
        prices,
        all_spot: sources
            .iter()
            .all(|source| source.node.capacity_type() == Some(CapacityType::Spot)),
        spot_to_spot,
        alone: sources.len() == 1,
        shared: match against {
            Against::Themselves => shared_types(sources, prices),
            Against::AllEnds => Vec::new(),
        },
        price,
    };
    let caps = caps(&launches, &terms).ok_or_else(|| not_cheaper(None))?;
    let kept = launches
        .into_iter()
        .zip(caps)
        .map(|(launch, cap)| terms.strike(launch, cap));
    let kept: Vec<Launch> = kept.collect::<Result<_, Why>>()?;
    let cost: f64 = kept.iter().map(|launch| launch.choice.price).sum();
    if cost * (1.0 + LEAST_SAVING) > price {
        return Err(not_cheaper(Some(cost)));
    }
    Ok(kept)
}

/// What each launch may cost, so that together they stay below the price whatever the cloud chooses.
fn caps(launches: &[Launch], terms: &Terms<'_>) -> Option<Vec<f64>> {
    if launches.len() == 1 {
        return Some(vec![terms.price]);
    }
    let least = |launch: &Launch| {
        let kinds = terms.prices.kinds(launch);
        let worsts = kinds.filter_map(|kind| worst(kind, &launch.requirements));
        worsts.map(|worst| worst.price).min_by(f64::total_cmp)
    };
    let least: Vec<f64> = launches.iter().map(least).collect::<Option<_>>()?;
    let sum: f64 = least.iter().sum();
    (sum < terms.price).then(|| least.iter().map(|price| price * (terms.price / sum)).collect())
}

/// The types that nodes of a set have, with the least that any of them costs now.
fn shared_types<'s>(sources: &'s [&Candidate], prices: &Prices<'_>) -> Vec<(&'s str, f64)> {
    if sources.len() < 2 {
        return Vec::new();
    }
    let types = sources.iter().filter_map(|source| {
        let labels = Requirements::from_labels(source.node.labels());
        let kind = prices.kind_of(&source.node)?;
        let now = cheapest(kind, &labels).map_or(source.price, |offering| offering.price);
        let name = source.node.labels().get(vocabulary::INSTANCE_TYPE)?;
        Some((name.as_str(), now))
    });
    types.collect()
}

struct Terms<'a> {
    prices: &'a Prices<'a>,
    all_spot: bool,
    spot_to_spot: bool,
    /// A single node goes, whatever the number of those that come.
    alone: bool,
    shared: Vec<(&'a str, f64)>,
    /// What the nodes cost that would go.
    price: f64,
}

impl Terms<'_> {
    fn strike(&self, launch: Launch, cap: f64) -> Result<Launch, Why> {
        let cap = self.below_shared(&launch, cap);
        let capacity = launch.requirements.get(vocabulary::CAPACITY_TYPE);
        if self.all_spot && capacity.has(CapacityType::Spot.as_str()) {
            return self.spot_to_spot(launch, cap);
        }
        let both = capacity.has(CapacityType::Spot.as_str()) && capacity.has(CapacityType::OnDemand.as_str());
        if !both {
            return self.narrowed(launch, cap, None);
        }
        // The prices that were compared are those of spot machines. A launch that could fall back to on-demand machines
        // might end dearer than what it replaces, so it is pinned to one or to the other.
        match self.narrowed(launch.clone(), cap, Some(CapacityType::Spot)) {
            Err(Why::NotCheaper { .. }) => self.narrowed(launch, cap, Some(CapacityType::OnDemand)),
            other => other,
        }
    }

    /// See [`Against::Themselves`].
    fn below_shared(&self, launch: &Launch, cap: f64) -> f64 {
        let listed: BTreeSet<&str> = launch.instance_types.iter().map(InstanceTypeName::as_str).collect();
        let shared = self.shared.iter().filter(|(name, _)| listed.contains(name));
        shared.map(|(_, price)| *price).fold(cap, f64::min)
    }

    fn narrowed(&self, launch: Launch, cap: f64, only: Option<CapacityType>) -> Result<Launch, Why> {
        let requirements = match only {
            Some(only) => Arc::new(paid_as(&launch.requirements, only)),
            None => launch.requirements.clone(),
        };
        let kinds = self.prices.kinds(&launch);
        let kept: Vec<_> = kinds
            .filter(|kind| may_cost_less(kind, cap))
            .filter(|kind| worst(kind, &requirements).is_some_and(|worst| worst.price < cap))
            .collect();
        self.rewritten(launch, requirements, kept, None)
    }

    fn spot_to_spot(&self, launch: Launch, cap: f64) -> Result<Launch, Why> {
        if !self.spot_to_spot {
            return Err(Why::SpotToSpotOff);
        }
        let requirements = Arc::new(paid_as(&launch.requirements, CapacityType::Spot));
        let kinds = self.prices.kinds(&launch);
        let kept: Vec<_> = kinds
            .filter(|kind| worst(kind, &requirements).is_some_and(|worst| worst.price < cap))
            .collect();
        if self.alone && !kept.is_empty() && kept.len() < SPOT_VARIETY {
            return Err(Why::TooFewSpot {
                wanted: SPOT_VARIETY,
                found: kept.len(),
            });
        }
        let most = self.alone.then_some(SPOT_VARIETY);
        self.rewritten(launch, requirements, kept, most)
    }

    /// The launch with these types alone, or with the cheapest of them as far as variety allows to cut the list.
    fn rewritten(
        &self,
        launch: Launch,
        requirements: Arc<Requirements>,
        kinds: Vec<&InstanceType>,
        most: Option<usize>,
    ) -> Result<Launch, Why> {
        let mut priced: Vec<_> = kinds
            .into_iter()
            .filter_map(|kind| Some((kind, cheapest(kind, &requirements)?)))
            .collect();
        priced.sort_by(|(a, x), (b, y)| x.price.total_cmp(&y.price).then_with(|| a.name.cmp(&b.name)));
        let Some((first, offering)) = priced.first() else {
            return Err(Why::NotCheaper {
                price: self.price,
                replacement: None,
            });
        };
        let choice = Choice {
            instance_type: first.name.clone(),
            zone: offering.zone.clone(),
            capacity_type: offering.capacity_type,
            price: offering.price,
        };
        let mut kinds: Vec<&InstanceType> = priced.into_iter().map(|(kind, _)| kind).collect();
        if let Some((key, wanted, found)) = lacking(&requirements, &kinds) {
            return Err(Why::MinValues { key, wanted, found });
        }
        if let Some(most) = most {
            let enough = (1..=kinds.len()).find(|count| lacking(&requirements, &kinds[..*count]).is_none());
            kinds.truncate(most.max(enough.unwrap_or(kinds.len())));
        }
        let names: Vec<_> = kinds.iter().map(|kind| kind.name.as_str()).collect();
        let mut requirements = Arc::unwrap_or_clone(requirements);
        let least = requirements
            .requirement(vocabulary::INSTANCE_TYPE)
            .and_then(|requirement| requirement.min_values);
        requirements.replace(Requirement::one_of(vocabulary::INSTANCE_TYPE, names).with_min_values(least));
        Ok(Launch {
            requirements: Arc::new(requirements),
            instance_types: kinds.into_iter().map(|kind| kind.name.clone()).collect(),
            choice,
            ..launch
        })
    }
}

/// The first label of which these types offer fewer values than the pool demands.
fn lacking(requirements: &Requirements, kinds: &[&InstanceType]) -> Option<(LabelKey, u32, u32)> {
    requirements.iter().find_map(|requirement| {
        let wanted = requirement.min_values?;
        let key = requirement.key.as_str();
        let values: BTreeSet<_> = if key == vocabulary::INSTANCE_TYPE {
            kinds.iter().map(|kind| kind.name.as_str()).collect()
        } else {
            let listed = kinds.iter().filter_map(|kind| kind.requirements.get(key).listed());
            listed.flatten().map(LabelValue::as_str).collect()
        };
        let found = u32::try_from(values.len()).unwrap_or(u32::MAX);
        (found < wanted).then(|| (requirement.key.clone(), wanted, found))
    })
}
