//! Situations and the plans they lead to. Names such as SC15.8.2 are rows of the behaviour specification.

mod absurd;
mod affinity;
mod audits;
mod default_spreads;
mod existing;
mod instance_types;
mod limits;
mod packing;
mod pools;
mod preferences;
mod properties;
mod requirements;
mod reserved;
mod spreads;
mod story;
mod taints;
mod volumes;
mod what_if;

use expect_test::Expect;
use model::Snapshot;

use crate::{Options, Plan, Round, audit, situation, solve};

/// Types of three sizes.
fn with_sizes(text: &str) -> String {
    format!(
        "type small  cpu=2 memory=4Gi price=0.1
         type medium cpu=4 memory=8Gi price=0.2
         type large  cpu=8 memory=16Gi price=0.4
         {text}"
    )
}

#[track_caller]
fn plan_of(situation: &str) -> Plan {
    planned(situation, Options::default())
}

#[track_caller]
fn planned(situation: &str, options: Options) -> Plan {
    let (snapshot, round) = situation::parse(situation);
    let round = Round { options, ..round };
    let plan = solve(&snapshot, &round);
    expect_clean(&snapshot, &plan);
    plan
}

#[track_caller]
fn expect_clean(snapshot: &Snapshot, plan: &Plan) {
    if let Err(broken) = audit(snapshot, plan) {
        let broken: Vec<String> = broken.iter().map(ToString::to_string).collect();
        panic!("{plan}breaks rules:\n{}", broken.join("\n"));
    }
}

#[track_caller]
fn check(situation: &str, expected: Expect) {
    expected.assert_eq(&plan_of(situation).to_string());
}

/// What the claims of a plan would say.
#[track_caller]
fn check_claims(situation: &str, expected: Expect) {
    let plan = plan_of(situation);
    let claims = plan.launches.iter().map(|launch| {
        let names: Vec<&str> = launch
            .instance_types
            .iter()
            .map(model::InstanceTypeName::as_str)
            .collect();
        let labels: Vec<String> = launch
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        format!(
            "types {}\nrequests {}\nlabels {}\n{}\n",
            names.join(" "),
            launch.requests,
            labels.join(" "),
            launch.requirements.to_string().replace(", ", "\n"),
        )
    });
    expected.assert_eq(&claims.collect::<String>());
}
