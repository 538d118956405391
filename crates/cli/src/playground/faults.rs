//! Trouble to order: what can be made to go wrong from the command line.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use clock::Clock;
use jiff::SignedDuration;
use kube::Client;
use kube_mem::ApiServer;
use provider_sim::{Faults, Interruption, Latency, Shortage};

use world::{
    dice::Dice,
    faults::{ApiFaults, Weather, crash::Gate, line::Line},
    history::History,
};

use super::story::Span;

/// EC2's warning before it takes a spot machine back.
const NOTICE: SignedDuration = SignedDuration::from_mins(2);

#[derive(Debug, Args)]
#[command(next_help_heading = "Trouble")]
pub struct Switches {
    /// How long machines take to boot.
    #[arg(long, value_name = "DURATION", default_value = "20s")]
    launch_latency: String,
    /// How long machines take to end.
    #[arg(long, value_name = "DURATION", default_value = "5s")]
    termination_latency: String,
    /// No capacity: TYPE, TYPE/ZONE or TYPE/ZONE/CAPACITY-TYPE, with * for any; repeatable.
    #[arg(long, value_name = "OFFERING")]
    insufficient_capacity: Vec<String>,
    /// Take spot machines back, on average after this long.
    #[arg(long, value_name = "DURATION")]
    spot_interruptions: Option<String>,
    /// Share of launches that fail, from 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    launch_failures: f64,
    /// Share of machines that boot and never join the cluster, from 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    never_join: f64,
    /// Let requests of the controllers fail, hang and conflict, and their watches break.
    #[arg(long)]
    pub api_faults: bool,
}

impl Switches {
    pub fn faults(&self) -> anyhow::Result<Faults> {
        let shares = [
            ("launch-failures", self.launch_failures),
            ("never-join", self.never_join),
        ];
        for (flag, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                bail!("--{flag}: {share} is not a share: use a number from 0 to 1");
            }
        }
        let interruption = match &self.spot_interruptions {
            None => None,
            Some(text) => Some(Interruption {
                mean_lifetime: duration("spot-interruptions", text)?,
                notice: NOTICE,
            }),
        };
        Ok(Faults {
            launch_latency: Latency::exactly(duration("launch-latency", &self.launch_latency)?),
            termination_latency: Latency::exactly(duration("termination-latency", &self.termination_latency)?),
            launch_failure: self.launch_failures,
            never_joins: self.never_join,
            interruption,
            shortages: self
                .insufficient_capacity
                .iter()
                .map(|text| shortage(text))
                .collect::<Result<_, _>>()?,
            ..Faults::default()
        })
    }
}

#[cfg(feature = "aws")]
impl Switches {
    /// The same trouble as orders to an AWS region.
    pub fn orders(&self) -> anyhow::Result<Vec<aws_fake::control::Command>> {
        let faults = self.faults()?;
        let without_order = [
            ("spot-interruptions", self.spot_interruptions.is_some()),
            ("launch-failures", self.launch_failures > 0.0),
            ("never-join", self.never_join > 0.0),
        ];
        for (flag, given) in without_order {
            if given {
                bail!("--{flag} is for --cloud sim; hint: order it on the region's control page, docs/aws-fake.md");
            }
        }
        let seconds = |latency: Latency| latency.at_least.as_secs_f64();
        let timing = serde_json::json!({"timing": {
            "join": seconds(faults.launch_latency), "shutdown": seconds(faults.termination_latency),
        }});
        let shortages = faults.shortages.iter().map(|shortage| {
            let any = || "*".to_owned();
            serde_json::json!({"capacity": {
                "instanceType": shortage.instance_type.as_ref().map_or_else(any, ToString::to_string),
                "zone": shortage.zone.as_ref().map_or_else(any, ToString::to_string),
                "capacityType": shortage.capacity_type.as_ref().map_or_else(any, ToString::to_string),
                "available": 0,
            }})
        });
        let orders = std::iter::once(timing).chain(shortages);
        orders
            .map(|order| serde_json::from_value(order).context("an order to the region"))
            .collect()
    }
}

/// A client whose requests go wrong now and then.
pub fn rough_line(server: &ApiServer, clock: &Arc<dyn Clock>, seed: u64) -> Client {
    let weather = Weather::default();
    weather.set(ApiFaults::rough());
    let line = Line {
        server: server.clone(),
        weather,
        gate: Gate::default(),
        history: History::new(clock.clone(), server.clone()),
        dice: Dice::seeded(seed).of("playground"),
        count: Arc::default(),
        rate: None,
    };
    line.client()
}

fn duration(flag: &str, text: &str) -> anyhow::Result<SignedDuration> {
    let span = Span::try_from(text.to_owned()).map_err(|problem| anyhow::anyhow!("--{flag}: {problem}"))?;
    SignedDuration::try_from(span.0).with_context(|| format!("--{flag}"))
}

fn shortage(text: &str) -> anyhow::Result<Shortage> {
    let mut parts = text.split('/').map(|part| (part != "*").then_some(part));
    let mut part = || parts.next().flatten();
    let (instance_type, zone, capacity_type) = (part(), part(), part());
    if text.split('/').count() > 3 || text.split('/').any(str::is_empty) {
        bail!("--insufficient-capacity: {text:?} is not of the form TYPE/ZONE/CAPACITY-TYPE");
    }
    let capacity_type = capacity_type
        .map(str::parse)
        .transpose()
        .context("--insufficient-capacity")?;
    Ok(Shortage {
        instance_type: instance_type.map(Into::into),
        zone: zone.map(Into::into),
        capacity_type,
        ..Shortage::default()
    })
}

#[cfg(test)]
mod tests {
    use model::CapacityType;

    use super::*;

    #[test]
    fn a_shortage_names_as_much_of_an_offering_as_it_means() {
        let all = shortage("*/us-west-2a/spot").unwrap();
        assert_eq!((all.instance_type, all.capacity_type), (None, Some(CapacityType::Spot)));
        assert_eq!(all.zone, Some("us-west-2a".into()));
        assert_eq!(shortage("m5.large").unwrap().instance_type, Some("m5.large".into()));
        for bad in ["", "a//spot", "a/b/c/d", "a/b/free"] {
            shortage(bad).expect_err(bad);
        }
    }
}
