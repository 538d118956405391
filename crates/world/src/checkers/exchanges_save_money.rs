//! Consolidation exchanges nodes only for what is cheaper, at the prices that the cloud publishes: never for the same shape
//! at the same price.
//!
//! Which new node belongs to which old ones no object of the API says. But commands are carried out in waves, all those of
//! one look at the cluster at once, and a wave of exchanges that each save money saves money. What a new node is there for
//! is told by an event about its claim.

use std::collections::BTreeMap;

use api::{conditions, conditions::node_claim as condition, labels, v1::NodeClaim};
use http::Method;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use model::CapacityType;
use provider_sim::OfferingKey;
use serde_json::Value;

use super::{Checker, Moment, Verdict};
use crate::{
    history::Deed,
    mirror::{Change, Key, Seen},
};

/// Between two waves the second is looked at twice, 15 seconds apart.
const APART: SignedDuration = SignedDuration::from_secs(14);
/// Prices are asked for once a minute, and a decision is made a little before its marks are seen.
const STALE: SignedDuration = SignedDuration::from_secs(90);

#[derive(Default)]
pub struct ExchangesSaveMoney {
    waves: Vec<Wave>,
    /// The wave before or in which each claim came to be.
    born: BTreeMap<String, usize>,
    /// Claims that take the place of others, until they are launched.
    awaited: Vec<String>,
}

struct Wave {
    began: Timestamp,
    last: Timestamp,
    /// What goes, with the most that it may have been held to cost.
    going: BTreeMap<String, f64>,
    /// What comes instead, with the least.
    coming: BTreeMap<String, f64>,
}

impl Checker for ExchangesSaveMoney {
    fn name(&self) -> &'static str {
        "exchanges save money"
    }

    fn saw(&mut self, seen: &Seen, moment: &Moment<'_>) -> Verdict {
        let Seen::NodeClaim(Change {
            old, new: Some(claim), ..
        }) = seen
        else {
            return Ok(());
        };
        if old.is_none() {
            self.born.insert(claim.name_any(), self.waves.len());
        }
        if is_underutilized(claim) && !old.as_ref().is_some_and(|old| is_underutilized(old)) {
            self.goes(claim, moment);
        }
        if self.awaited.contains(&claim.name_any()) {
            return self.comes(claim, moment);
        }
        Ok(())
    }

    fn called(&mut self, deed: &Deed, moment: &Moment<'_>) -> Verdict {
        let Some(name) = replacement(deed) else { return Ok(()) };
        self.awaited.push(name.clone());
        match moment.scene.node_claims.get(&Key::cluster(name)) {
            Some(claim) => self.comes(&claim, moment),
            None => Ok(()),
        }
    }
}

impl ExchangesSaveMoney {
    fn goes(&mut self, claim: &NodeClaim, moment: &Moment<'_>) {
        let now = moment.now;
        if self
            .waves
            .last()
            .is_none_or(|wave| now.duration_since(wave.last) > APART)
        {
            self.waves.push(Wave {
                began: now,
                last: now,
                going: BTreeMap::new(),
                coming: BTreeMap::new(),
            });
        }
        let price = prices(claim, now, moment).into_iter().fold(0.0, f64::max);
        if let Some(wave) = self.waves.last_mut() {
            wave.last = now;
            wave.going.insert(claim.name_any(), price);
        }
    }

    /// Looked at once it is known what the cloud has delivered.
    fn comes(&mut self, claim: &NodeClaim, moment: &Moment<'_>) -> Verdict {
        let name = claim.name_any();
        let born = self.born.get(&name).and_then(|born| born.checked_sub(1));
        let (Some(wave), Some(shape)) = (born.and_then(|born| self.waves.get_mut(born)), shape(claim)) else {
            return Ok(());
        };
        self.awaited.retain(|awaited| *awaited != name);
        let least = prices(claim, wave.began, moment).into_iter().fold(f64::MAX, f64::min);
        wave.coming.insert(name.clone(), least);
        let (going, coming): (f64, f64) = (wave.going.values().sum(), wave.coming.values().sum());
        if coming < going {
            return Ok(());
        }
        let going_names: Vec<&str> = wave.going.keys().map(String::as_str).collect();
        let coming_names: Vec<&str> = wave.coming.keys().map(String::as_str).collect();
        Err(format!(
            "{} of ${going:.4} an hour is exchanged for {} of ${coming:.4}; the last of them is {shape}",
            going_names.join(", "),
            coming_names.join(", "),
        ))
    }
}

fn is_underutilized(claim: &NodeClaim) -> bool {
    let listed = claim.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions::find(listed.unwrap_or_default(), condition::DISRUPTION_REASON)
        .is_some_and(|found| found.reason == "Underutilized")
}

/// The claim that an event calls a replacement for reasons of money.
fn replacement(deed: &Deed) -> Option<String> {
    let Deed::Request {
        method,
        path,
        body,
        code: 200..300,
        ..
    } = deed
    else {
        return None;
    };
    if *method != Method::POST || !path.ends_with("/events") {
        return None;
    }
    let event: Value = serde_json::from_slice(body).ok()?;
    let told = event["reason"] == "DisruptionLaunching" && event["message"].as_str()?.ends_with("Underutilized");
    let name = event["involvedObject"]["name"].as_str()?;
    told.then(|| name.to_owned())
}

fn shape(claim: &NodeClaim) -> Option<OfferingKey> {
    let label = |key: &str| claim.labels().get(key).map(String::as_str);
    Some(OfferingKey {
        instance_type: label(labels::INSTANCE_TYPE)?.into(),
        zone: label(labels::ZONE)?.into(),
        capacity_type: label(labels::CAPACITY_TYPE)?.parse::<CapacityType>().ok()?,
    })
}

/// What the machine of a claim may have been held to cost at a moment: what it cost then, and a little earlier.
fn prices(claim: &NodeClaim, at: Timestamp, moment: &Moment<'_>) -> Vec<f64> {
    let Some(key) = shape(claim) else { return Vec::new() };
    let mut shapes = moment.catalog.all_shapes();
    let offering = shapes.find(|shape| shape.name == key.instance_type).and_then(|shape| {
        let mut offerings = shape.offerings.iter();
        offerings.find(|offering| offering.zone == key.zone && offering.capacity_type == key.capacity_type)
    });
    let listed = offering.map(|offering| offering.price).into_iter();
    listed
        .flat_map(|listed| [at, at - STALE].map(|at| moment.cloud.price(&key, listed, at)))
        .collect()
}
