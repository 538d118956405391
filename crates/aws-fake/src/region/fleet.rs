//! Fleets of type `instant`: overrides in the order of the allocation strategy, each until it has no more.

use std::cmp::Ordering;

use jiff::Timestamp;

use super::{
    Region, Tags,
    launch::{Origin, Spec},
    market::{self, Capacity, Pool},
    templates::{TemplateData, TemplateRef},
};
use crate::refusal::Refusal;

/// How a fleet chooses among its overrides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    LowestPrice,
    /// Those with enough capacity for the whole request first, then by price.
    PriceCapacityOptimized,
    /// Those with the most capacity first.
    CapacityOptimized,
    /// By priority among those with enough capacity for the whole request.
    CapacityOptimizedPrioritized,
    Prioritized,
}

impl Strategy {
    pub fn for_on_demand(word: Option<&str>) -> Result<Self, Refusal> {
        match word {
            None | Some("lowest-price") => Ok(Strategy::LowestPrice),
            Some("prioritized") => Ok(Strategy::Prioritized),
            Some(other) => Err(unknown(other)),
        }
    }

    pub fn for_spot(word: Option<&str>) -> Result<Self, Refusal> {
        match word {
            None | Some("lowest-price") => Ok(Strategy::LowestPrice),
            Some("price-capacity-optimized") => Ok(Strategy::PriceCapacityOptimized),
            Some("capacity-optimized") => Ok(Strategy::CapacityOptimized),
            Some("capacity-optimized-prioritized") => Ok(Strategy::CapacityOptimizedPrioritized),
            Some(other) => Err(unknown(other)),
        }
    }
}

fn unknown(strategy: &str) -> Refusal {
    Refusal::bad_value(format!("The allocation strategy '{strategy}' is not supported."))
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Override {
    pub instance_type: Option<String>,
    pub subnet: Option<String>,
    pub zone: Option<String>,
    pub image: Option<String>,
    /// As it came, so that it can be echoed.
    pub priority: Option<String>,
}

#[derive(Clone, Debug)]
pub struct FleetGroup {
    pub template: TemplateRef,
    pub overrides: Vec<Override>,
}

/// So many instances of one capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub capacity: Capacity,
    pub count: u32,
    pub strategy: Strategy,
}

#[derive(Clone, Debug)]
pub struct FleetRequest {
    pub groups: Vec<FleetGroup>,
    pub targets: Vec<Target>,
    pub instance_tags: Tags,
    pub client_token: Option<String>,
}

/// The template and the override that something came of.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub template_id: String,
    pub over: Override,
    pub capacity: Capacity,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FleetInstances {
    pub choice: Choice,
    pub ids: Vec<String>,
    pub instance_type: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FleetError {
    pub choice: Choice,
    pub refusal: Refusal,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FleetAnswer {
    pub id: String,
    pub instances: Vec<FleetInstances>,
    pub errors: Vec<FleetError>,
}

struct Candidate {
    choice: Choice,
    data: TemplateData,
    instance_type: String,
    price: f64,
    priority: f64,
    /// What is known to be left; a pool without a limit is deeper than any other.
    depth: u32,
}

impl Region {
    /// Launches what can be launched and tells the rest as errors of the answer.
    ///
    /// # Errors
    ///
    /// What makes EC2 refuse the call as a whole: templates that are not there, overrides that name no type.
    pub fn create_fleet(&mut self, request: &FleetRequest, now: Timestamp) -> Result<FleetAnswer, Refusal> {
        let mut answer = FleetAnswer {
            id: String::new(),
            instances: Vec::new(),
            errors: Vec::new(),
        };
        let mut plans = Vec::new();
        for target in &request.targets {
            plans.push((target, self.candidates(request, *target, now)?));
        }
        answer.id = format!("fleet-{}", self.ids.uuid());
        for (target, candidates) in plans {
            self.fulfil(request, *target, &candidates, &mut answer, now);
        }
        Ok(answer)
    }

    fn candidates(&self, request: &FleetRequest, target: Target, now: Timestamp) -> Result<Vec<Candidate>, Refusal> {
        let mut all = Vec::new();
        for group in &request.groups {
            let template = self.template(&group.template, now)?;
            let alone = [Override::default()];
            let overrides = if group.overrides.is_empty() {
                &alone[..]
            } else {
                &group.overrides[..]
            };
            for over in overrides {
                let instance_type = over.instance_type.as_ref().or(template.data.instance_type.as_ref());
                let instance_type = instance_type.ok_or_else(|| {
                    let message = "Neither the launch template nor the override names an instance type.";
                    Refusal::new("InvalidFleetConfig", message)
                })?;
                let zone = self.zone_of(over);
                let pool = Pool {
                    instance_type,
                    zone: &zone,
                    capacity: target.capacity,
                };
                let price = market::fact(instance_type)
                    .map_or(f64::INFINITY, |fact| self.market.price(fact, &zone, target.capacity));
                let priority = over.priority.as_ref().and_then(|text| text.parse().ok());
                all.push(Candidate {
                    choice: Choice {
                        template_id: template.id.clone(),
                        over: over.clone(),
                        capacity: target.capacity,
                    },
                    data: template.data.clone(),
                    instance_type: instance_type.clone(),
                    price,
                    priority: priority.unwrap_or(f64::INFINITY),
                    depth: self.market.shortage(pool).map_or(u32::MAX, |shortage| shortage.left),
                });
            }
        }
        // Sorting is stable: of those alike the one that was named first comes first.
        all.sort_by(|one, other| order(target, one, other));
        Ok(all)
    }

    fn zone_of(&self, over: &Override) -> String {
        let subnet = over.subnet.as_ref().and_then(|id| self.network.subnet(id));
        subnet
            .map(|subnet| subnet.zone.clone())
            .or_else(|| over.zone.clone())
            .unwrap_or_default()
    }

    fn fulfil(
        &mut self,
        request: &FleetRequest,
        target: Target,
        candidates: &[Candidate],
        answer: &mut FleetAnswer,
        now: Timestamp,
    ) {
        let mut wanted = target.count;
        for candidate in candidates {
            if wanted == 0 {
                break;
            }
            let (ids, refusal) = self.exhaust(request, candidate, wanted, &answer.id, now);
            wanted -= u32::try_from(ids.len()).unwrap_or(wanted);
            if !ids.is_empty() {
                answer.instances.push(FleetInstances {
                    choice: candidate.choice.clone(),
                    ids,
                    instance_type: candidate.instance_type.clone(),
                });
            }
            if let Some(refusal) = refusal {
                answer.errors.push(FleetError {
                    choice: candidate.choice.clone(),
                    refusal,
                });
            }
        }
    }

    /// As many of one candidate as are wanted, or as there are.
    fn exhaust(
        &mut self,
        request: &FleetRequest,
        candidate: &Candidate,
        wanted: u32,
        fleet: &str,
        now: Timestamp,
    ) -> (Vec<String>, Option<Refusal>) {
        let over = &candidate.choice.over;
        let spec = Spec {
            instance_type: candidate.instance_type.clone(),
            image: over.image.clone(),
            subnet: over.subnet.clone(),
            zone: over.zone.clone(),
            capacity: candidate.choice.capacity,
            template: candidate.data.clone(),
        };
        let checked = match self.check(&spec, now) {
            Ok(checked) => checked,
            Err(refusal) => return (Vec::new(), Some(refusal)),
        };
        let origin = Origin {
            instance_tags: request.instance_tags.clone(),
            client_token: request.client_token.clone(),
            template: Some(candidate.choice.template_id.clone()),
            fleet: Some(fleet.to_owned()),
        };
        let mut ids = Vec::new();
        for _ in 0..wanted {
            match self.launch(&checked, &origin, now) {
                Ok(id) => ids.push(id),
                Err(refusal) => return (ids, Some(refusal)),
            }
        }
        (ids, None)
    }
}

fn order(target: Target, one: &Candidate, other: &Candidate) -> Ordering {
    let by_price = || one.price.total_cmp(&other.price);
    let by_priority = || one.priority.total_cmp(&other.priority);
    let too_shallow = |candidate: &Candidate| candidate.depth < target.count;
    let deep_first = || too_shallow(one).cmp(&too_shallow(other));
    match target.strategy {
        Strategy::LowestPrice => by_price(),
        Strategy::PriceCapacityOptimized => deep_first().then_with(by_price),
        Strategy::CapacityOptimized => other.depth.cmp(&one.depth).then_with(by_price),
        Strategy::CapacityOptimizedPrioritized => deep_first().then_with(by_priority),
        Strategy::Prioritized => by_priority(),
    }
}

#[cfg(test)]
mod tests;
