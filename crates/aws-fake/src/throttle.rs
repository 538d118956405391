//! Token buckets with the rates that AWS publishes, or that its clients have measured where it does not.
//!
//! Each call takes a token; tokens come back at a steady rate. Calls without a bucket of their own share that of their kind.

use std::collections::BTreeMap;

use http::StatusCode;
use jiff::Timestamp;

use crate::{
    refusal::Refusal,
    wire::{Call, Service},
};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub per_second: f64,
    pub burst: f64,
}

/// EC2's: each reading call has a bucket of its own, each changing one too; those with other figures are named.
fn published(service: Service, action: &str) -> Option<Rate> {
    let rate = |per_second, burst| Some(Rate { per_second, burst });
    let reads = action.starts_with("Describe") || action.starts_with("Get") || action.starts_with("List");
    match (service, action) {
        (Service::Ec2, "RunInstances") => rate(2.0, 5.0),
        (Service::Ec2, "TerminateInstances") => rate(5.0, 100.0),
        (Service::Ec2, "CreateTags") => rate(10.0, 100.0),
        (Service::Ec2, _) if reads => rate(20.0, 100.0),
        (Service::Ec2, _) => rate(5.0, 50.0),
        (Service::Ssm, _) => rate(40.0, 40.0),
        (Service::Eks, _) => rate(10.0, 100.0),
        (Service::Iam, _) => rate(20.0, 100.0),
        (Service::Pricing, _) => rate(10.0, 100.0),
        (Service::Sqs | Service::Sts | Service::ZonalShift, _) => None,
    }
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    filled: Timestamp,
}

#[derive(Debug)]
pub struct Throttle {
    pub enabled: bool,
    /// Rates that a script has set, by action.
    pub scripted: BTreeMap<String, Rate>,
    buckets: BTreeMap<(Service, String), Bucket>,
}

impl Default for Throttle {
    fn default() -> Self {
        Self {
            enabled: true,
            scripted: BTreeMap::new(),
            buckets: BTreeMap::new(),
        }
    }
}

impl Throttle {
    /// Takes a token for the call, or refuses it as its service does.
    pub fn admit(&mut self, call: &Call, now: Timestamp) -> Result<(), Refusal> {
        let scripted = self.scripted.get(&call.action).copied();
        let Some(rate) = scripted.or_else(|| published(call.service, &call.action)) else {
            return Ok(());
        };
        if !self.enabled {
            return Ok(());
        }
        let full = Bucket {
            tokens: rate.burst,
            filled: now,
        };
        let bucket = self.buckets.entry((call.service, call.action.clone())).or_insert(full);
        let elapsed = now.duration_since(bucket.filled).as_secs_f64().max(0.0);
        bucket.tokens = (bucket.tokens + elapsed * rate.per_second).min(rate.burst);
        bucket.filled = now;
        if bucket.tokens < 1.0 {
            return Err(refusal(call.service));
        }
        bucket.tokens -= 1.0;
        Ok(())
    }
}

fn refusal(service: Service) -> Refusal {
    match service {
        Service::Ec2 => {
            Refusal::new("RequestLimitExceeded", "Request limit exceeded.").with_status(StatusCode::SERVICE_UNAVAILABLE)
        }
        Service::Iam | Service::Sts => Refusal::new("Throttling", "Rate exceeded"),
        Service::Eks | Service::ZonalShift => {
            Refusal::new("ThrottlingException", "Rate exceeded").with_status(StatusCode::TOO_MANY_REQUESTS)
        }
        Service::Sqs => Refusal::new("RequestThrottled", "Rate exceeded"),
        Service::Ssm | Service::Pricing => Refusal::new("ThrottlingException", "Rate exceeded"),
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::wire::{Parameters, query::Params};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn call(service: Service, action: &str) -> Call {
        Call {
            service,
            action: action.to_owned(),
            parameters: Parameters::Form(Params::default()),
            access_key: None,
            attempt: 1,
            host: None,
        }
    }

    /// How many of a hundred and fifty calls at one moment are let through.
    fn burst(throttle: &mut Throttle, call: &Call, now: Timestamp) -> usize {
        (0..150).filter(|_| throttle.admit(call, now).is_ok()).count()
    }

    #[test]
    fn every_call_has_its_burst_and_its_rate() {
        let table = [
            ("DescribeInstances", 100, 20),
            ("CreateFleet", 50, 5),
            ("RunInstances", 5, 2),
            ("TerminateInstances", 100, 5),
            ("CreateTags", 100, 10),
        ];
        let mut throttle = Throttle::default();
        for (action, most, per_second) in table {
            let call = call(Service::Ec2, action);
            assert_eq!(burst(&mut throttle, &call, NOW), most, "{action}");
            let later = NOW + SignedDuration::from_secs(1);
            assert_eq!(burst(&mut throttle, &call, later), per_second, "{action}");
        }
    }

    #[test]
    fn services_refuse_in_their_own_words() {
        let mut throttle = Throttle::default();
        let refused = |throttle: &mut Throttle, call: &Call| {
            burst(throttle, call, NOW);
            throttle
                .admit(call, NOW)
                .err()
                .map(|refusal| (refusal.code, refusal.status.as_u16()))
        };
        let codes = [
            (
                Service::Ec2,
                "CreateFleet",
                Some(("RequestLimitExceeded".to_owned(), 503)),
            ),
            (
                Service::Ssm,
                "GetParameter",
                Some(("ThrottlingException".to_owned(), 400)),
            ),
            (
                Service::Eks,
                "DescribeCluster",
                Some(("ThrottlingException".to_owned(), 429)),
            ),
            (Service::Sqs, "ReceiveMessage", None),
        ];
        for (service, action, expected) in codes {
            assert_eq!(refused(&mut throttle, &call(service, action)), expected, "{action}");
        }
    }

    #[test]
    fn scripts_set_rates_and_switch_them_off() {
        let mut throttle = Throttle::default();
        let rate = Rate {
            per_second: 0.0,
            burst: 1.0,
        };
        throttle.scripted.insert("CreateFleet".to_owned(), rate);
        let call = call(Service::Ec2, "CreateFleet");
        assert_eq!(burst(&mut throttle, &call, NOW), 1);
        throttle.enabled = false;
        assert_eq!(burst(&mut throttle, &call, NOW), 150);
    }
}
