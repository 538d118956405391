//! A plan as programs read it. Names and order of the fields are a contract.

use std::collections::BTreeMap;

use model::{CapacityType, PodKey, Snapshot, requirement::SelectorRequirement, vocabulary};
use scheduler::{
    Launch, Plan, Refusal,
    dra::{ClaimAllocation, Grant},
};
use serde::Serialize;

use crate::input::machine_name;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub new_nodes: Vec<NewNode>,
    pub existing_nodes: Vec<ExistingNode>,
    pub unschedulable: Vec<Unschedulable>,
    /// US dollars, for the new nodes together.
    pub price_per_hour: f64,
    /// The solver alone, without reading and printing.
    pub solve_millis: f64,
    /// How many pods can only go to which zone.
    pub pending_pods_by_effective_zone: BTreeMap<String, usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_claims: Vec<ClaimDevices>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewNode {
    pub node_pool: String,
    /// Cheapest first.
    pub instance_types: Vec<String>,
    /// What would be asked for first.
    pub launch: Offer,
    pub requirements: Vec<WrittenRequirement>,
    pub requests: BTreeMap<String, String>,
    pub pods: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dra_drivers: Vec<String>,
}

/// Which devices a claim gets, by what its node may become.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimDevices {
    pub claim: String,
    pub devices: BTreeMap<String, Vec<Device>>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Device {
    pub driver: String,
    pub pool: String,
    pub device: String,
    /// The device comes with the instance type and is not published yet.
    pub template: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: CapacityType,
    pub price_per_hour: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenRequirement {
    pub key: String,
    pub operator: String,
    pub values: Vec<String>,
    pub min_values: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExistingNode {
    pub name: String,
    pub pods: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unschedulable {
    pub pod: String,
    pub reason: String,
    pub refusals: Vec<PoolReason>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolReason {
    pub node_pool: String,
    pub reason: String,
}

impl Report {
    pub fn new(snapshot: &Snapshot, plan: &Plan, solve_millis: f64) -> Self {
        let existing = plan.placements.iter().map(|placement| ExistingNode {
            name: machine_name(snapshot, &placement.node).to_owned(),
            pods: names(&placement.pods),
        });
        let unschedulable = plan.refusals.iter().map(|(pod, refusal)| Unschedulable {
            pod: pod.to_string(),
            reason: refusal.to_string(),
            refusals: by_pool(refusal),
        });
        Self {
            new_nodes: plan.launches.iter().map(new_node).collect(),
            existing_nodes: existing.collect(),
            unschedulable: unschedulable.collect(),
            price_per_hour: rounded(plan.launch_price(), 1e9),
            solve_millis: rounded(solve_millis, 1e3),
            pending_pods_by_effective_zone: plan
                .zones
                .iter()
                .map(|(zone, pods)| (zone.to_string(), *pods))
                .collect(),
            resource_claims: plan.devices.iter().map(claim_devices).collect(),
        }
    }

    /// Adds pods that did not even get into the round.
    pub fn refuse(&mut self, pods: BTreeMap<&PodKey, &str>) {
        self.unschedulable
            .extend(pods.into_iter().map(|(pod, reason)| Unschedulable {
                pod: pod.to_string(),
                reason: reason.to_owned(),
                refusals: Vec::new(),
            }));
        self.unschedulable.sort_by(|a, b| a.pod.cmp(&b.pod));
    }
}

/// Sums of prices have digits that mean nothing.
fn rounded(number: f64, steps: f64) -> f64 {
    (number * steps).round() / steps
}

fn names(pods: &[PodKey]) -> Vec<String> {
    let mut names: Vec<String> = pods.iter().map(ToString::to_string).collect();
    names.sort();
    names
}

fn new_node(launch: &Launch) -> NewNode {
    let choice = &launch.choice;
    // The list of instance types says it, except for how many different ones have to remain.
    let told = |written: &SelectorRequirement| written.key != vocabulary::INSTANCE_TYPE || written.min_values.is_some();
    NewNode {
        node_pool: launch.pool.to_string(),
        instance_types: launch.instance_types.iter().map(ToString::to_string).collect(),
        launch: Offer {
            instance_type: choice.instance_type.to_string(),
            zone: choice.zone.to_string(),
            capacity_type: choice.capacity_type,
            price_per_hour: choice.price,
        },
        requirements: launch
            .requirements
            .to_selector()
            .into_iter()
            .filter(told)
            .map(|written| WrittenRequirement {
                key: written.key.to_string(),
                operator: written.operator.to_string(),
                values: written.values.iter().map(ToString::to_string).collect(),
                min_values: written.min_values,
            })
            .collect(),
        requests: launch
            .requests
            .iter()
            .map(|(name, amount)| (name.to_string(), amount.to_string()))
            .collect(),
        pods: names(&launch.pods),
        dra_drivers: launch.device_drivers.iter().map(ToString::to_string).collect(),
    }
}

fn claim_devices(allocation: &ClaimAllocation) -> ClaimDevices {
    let device = |grant: &Grant| Device {
        driver: grant.device.driver.to_string(),
        pool: grant.device.pool.to_string(),
        device: grant.device.device.to_string(),
        template: grant.template,
    };
    let kinds = allocation.devices.iter();
    ClaimDevices {
        claim: allocation.claim.to_string(),
        devices: kinds
            .map(|(kind, grants)| (kind.to_string(), grants.iter().map(device).collect()))
            .collect(),
    }
}

fn by_pool(refusal: &Refusal) -> Vec<PoolReason> {
    match refusal {
        Refusal::Pools(pools) => pools
            .iter()
            .map(|(pool, reason)| PoolReason {
                node_pool: pool.to_string(),
                reason: reason.to_string(),
            })
            .collect(),
        _ => Vec::new(),
    }
}
