//! A market: prices that move and stocks that run out, from one period to the next.

use jiff::{SignedDuration, Timestamp};
use model::CapacityType;
use serde::{Deserialize, Serialize};

use crate::{dice::Dice, machine::OfferingKey};

/// How prices and stocks change by themselves. In every period each offering has a price of its own, drawn from the seed,
/// and each spot offering may be sold out. A machine costs for good what it cost when it was launched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Market {
    /// How long prices and stocks stay as they are.
    pub period: SignedDuration,
    /// How far a spot price is from the listed one at most, as a share of it.
    pub spot_swing: f64,
    /// The same of on-demand prices.
    #[serde(default)]
    pub on_demand_swing: f64,
    /// Probability that a spot offering cannot be had in a period.
    #[serde(default)]
    pub sold_out: f64,
    /// From here on prices stay as they are, and everything can be had.
    #[serde(default)]
    pub until: Option<Timestamp>,
}

impl Market {
    /// The number of the period; periods begin together everywhere.
    pub fn period_at(&self, moment: Timestamp) -> i64 {
        let moment = self.until.map_or(moment, |until| moment.min(until));
        moment.as_second().div_euclid(self.period.as_secs().max(1))
    }

    pub(crate) fn price(&self, seed: u64, offering: &OfferingKey, listed: f64, period: i64) -> f64 {
        let swing = match offering.capacity_type {
            CapacityType::Spot => self.spot_swing,
            CapacityType::OnDemand => self.on_demand_swing,
            CapacityType::Reserved => 0.0,
        };
        listed * (1.0 + swing * dice(seed, "price", offering, period).swing())
    }

    pub(crate) fn is_sold_out(&self, seed: u64, offering: &OfferingKey, now: Timestamp) -> bool {
        offering.capacity_type == CapacityType::Spot
            && self.until.is_none_or(|until| now < until)
            && dice(seed, "stock", offering, self.period_at(now)).chance(self.sold_out)
    }
}

fn dice(seed: u64, purpose: &str, offering: &OfferingKey, period: i64) -> Dice {
    Dice::new(seed, purpose, &format!("{offering}/{period}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offering(capacity_type: CapacityType) -> OfferingKey {
        OfferingKey {
            instance_type: "m5.large".into(),
            zone: "a".into(),
            capacity_type,
        }
    }

    fn market() -> Market {
        Market {
            period: SignedDuration::from_mins(10),
            spot_swing: 0.3,
            on_demand_swing: 0.0,
            sold_out: 0.5,
            until: None,
        }
    }

    fn at(minutes: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
    }

    #[test]
    fn prices_move_from_period_to_period_and_stay_near_the_listed_one() {
        let price = |kind, period| market().price(7, &offering(kind), 2.0, period);
        let spot: Vec<f64> = (0..100).map(|period| price(CapacityType::Spot, period)).collect();
        assert!(spot.iter().all(|price| (1.4..=2.6).contains(price)), "{spot:?}");
        assert!(spot.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(spot.iter().any(|price| *price < 1.6) && spot.iter().any(|price| *price > 2.4));
        assert_eq!(spot[3], price(CapacityType::Spot, 3), "the same seed, the same price");
        assert_eq!(price(CapacityType::OnDemand, 3), 2.0);
        assert_eq!(price(CapacityType::Reserved, 3), 2.0);
    }

    #[test]
    fn a_period_ends_when_the_next_begins_and_the_last_never() {
        assert_eq!(
            [9, 10, 19, 20].map(|minute| market().period_at(at(minute))),
            [0, 1, 1, 2]
        );
        let ended = Market {
            until: Some(at(15)),
            ..market()
        };
        assert_eq!([9, 14, 15, 90].map(|minute| ended.period_at(at(minute))), [0, 1, 1, 1]);
    }

    #[test]
    fn spot_offerings_are_sold_out_for_whole_periods() {
        let sold_out = |kind, minute| market().is_sold_out(7, &offering(kind), at(minute));
        let hits = (0..100)
            .filter(|period| sold_out(CapacityType::Spot, 10 * period))
            .count();
        assert!((30..70).contains(&hits), "{hits} of 100 at 50 %");
        assert!(
            (0..100).all(
                |period| sold_out(CapacityType::Spot, 10 * period) == sold_out(CapacityType::Spot, 10 * period + 9)
            )
        );
        assert!((0..100).all(|period| !sold_out(CapacityType::OnDemand, 10 * period)));
        let ended = Market {
            until: Some(at(0)),
            ..market()
        };
        assert!((0..100).all(|period| !ended.is_sold_out(7, &offering(CapacityType::Spot), at(10 * period))));
    }
}
