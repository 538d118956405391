//! How badly the simulated cloud behaves: plain data that can be read from a file and changed while it runs.

use jiff::{SignedDuration, Timestamp};
use model::{CapacityType, InstanceTypeName, Zone};
use serde::{Deserialize, Serialize};

use crate::{machine::OfferingKey, market::Market};

/// A duration that differs from case to case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Latency {
    pub at_least: SignedDuration,
    pub at_most: SignedDuration,
}

impl Latency {
    pub const NONE: Latency = Latency::exactly(SignedDuration::ZERO);

    pub const fn exactly(duration: SignedDuration) -> Self {
        Self::between(duration, duration)
    }

    pub const fn between(at_least: SignedDuration, at_most: SignedDuration) -> Self {
        Self { at_least, at_most }
    }
}

/// Offerings that cannot be had for a while. What is `None` matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Shortage {
    pub instance_type: Option<InstanceTypeName>,
    pub zone: Option<Zone>,
    pub capacity_type: Option<CapacityType>,
    pub from: Option<Timestamp>,
    /// The first moment at which it is over.
    pub until: Option<Timestamp>,
}

impl Shortage {
    pub fn covers(&self, offering: &OfferingKey, now: Timestamp) -> bool {
        self.instance_type
            .as_ref()
            .is_none_or(|name| *name == offering.instance_type)
            && self.zone.as_ref().is_none_or(|zone| *zone == offering.zone)
            && self.capacity_type.is_none_or(|kind| kind == offering.capacity_type)
            && self.from.is_none_or(|from| from <= now)
            && self.until.is_none_or(|until| now < until)
    }
}

/// How spot machines are taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Interruption {
    /// How long a spot machine lives on average before its notice.
    pub mean_lifetime: SignedDuration,
    /// From the notice to the end. EC2 gives two minutes.
    pub notice: SignedDuration,
}

/// All that can go slowly or wrong. The default is a cloud that answers at once and never fails, as upstream's KWOK
/// provider does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Faults {
    /// From the launch to the boot; the node class's registration delay comes on top.
    pub launch_latency: Latency,
    /// From the request to end a machine to its end.
    pub termination_latency: Latency,
    /// Probability that a launch is refused.
    pub launch_failure: f64,
    /// Probability that a launch succeeds and its answer gets lost.
    pub lost_answer: f64,
    /// Probability that any other call is not answered.
    pub unanswered: f64,
    /// Probability that a machine boots and never joins the cluster.
    pub never_joins: f64,
    /// When there is a new image: machines that were launched before run one that is out of date from then on.
    pub image_since: Option<Timestamp>,
    /// Interruption of spot machines; none without it.
    pub interruption: Option<Interruption>,
    pub shortages: Vec<Shortage>,
    /// Prices that move and stocks that run out; all is as listed without it.
    pub market: Option<Market>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offering() -> OfferingKey {
        OfferingKey {
            instance_type: "m5.large".into(),
            zone: "a".into(),
            capacity_type: CapacityType::Spot,
        }
    }

    #[track_caller]
    fn check(text: &str, expected: bool) {
        let shortage: Shortage = serde_json::from_str(text).expect("a shortage");
        let now = "2026-01-01T12:00:00Z".parse().expect("a time");
        assert_eq!(shortage.covers(&offering(), now), expected, "{text}");
    }

    #[test]
    fn a_shortage_covers_what_it_names_while_it_lasts() {
        check("{}", true);
        check(
            r#"{"instanceType": "m5.large", "zone": "a", "capacityType": "spot"}"#,
            true,
        );
        check(r#"{"instanceType": "m5.xlarge"}"#, false);
        check(r#"{"zone": "b"}"#, false);
        check(r#"{"capacityType": "on-demand"}"#, false);
        check(
            r#"{"from": "2026-01-01T12:00:00Z", "until": "2026-01-01T12:00:01Z"}"#,
            true,
        );
        check(r#"{"from": "2026-01-01T12:00:01Z"}"#, false);
        check(r#"{"until": "2026-01-01T12:00:00Z"}"#, false);
    }

    #[test]
    fn faults_are_read_and_written_as_plain_data() {
        let text = r#"{"launchLatency": {"atLeast": "10s", "atMost": "1m"}, "neverJoins": 0.1,
            "interruption": {"meanLifetime": "1h", "notice": "2m"},
            "market": {"period": "10m", "spotSwing": 0.3, "soldOut": 0.1}}"#;
        let faults: Faults = serde_json::from_str(text).expect("faults");
        assert_eq!(faults.launch_latency.at_most, SignedDuration::from_mins(1));
        let again: Faults = serde_json::from_str(&serde_json::to_string(&faults).expect("plain data")).expect("faults");
        assert_eq!(faults, again);
        assert!(serde_json::from_str::<Faults>(r#"{"launchFailrue": 1}"#).is_err());
    }
}
