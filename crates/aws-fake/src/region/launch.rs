//! The first half of a launch: what EC2 checks before it looks for capacity. [`super::start`] is the second.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    Region, Tags,
    market::{self, Capacity, Pool},
    reserved::PlacementGroup,
    templates::{ProfileRef, TemplateData},
};
use crate::{facts::InstanceType, refusal::Refusal};

/// What is to be launched, with everything that overrides the template already in it.
#[derive(Clone, Debug)]
pub struct Spec {
    pub instance_type: String,
    pub image: Option<String>,
    pub subnet: Option<String>,
    pub zone: Option<String>,
    pub capacity: Capacity,
    pub template: TemplateData,
}

/// Who asked for it.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    pub instance_tags: Tags,
    pub client_token: Option<String>,
    pub template: Option<String>,
    pub fleet: Option<String>,
}

/// A launch that has passed the checks.
#[derive(Clone, Debug)]
pub struct Checked {
    pub(super) fact: Arc<InstanceType>,
    pub(super) image: String,
    pub(super) architecture: String,
    pub(super) windows: bool,
    pub(super) subnet: String,
    pub(super) zone: String,
    pub(super) profile: Option<(String, String)>,
    pub(super) groups: Vec<(String, String)>,
    pub(super) group: Option<PlacementGroup>,
    pub(super) capacity: Capacity,
    pub(super) template: TemplateData,
}

impl Checked {
    pub fn pool(&self) -> Pool<'_> {
        Pool {
            instance_type: &self.fact.name,
            zone: &self.zone,
            capacity: self.capacity,
        }
    }
}

impl Region {
    /// Checks a launch as RunInstances does, capacity aside.
    pub fn check(&self, spec: &Spec, now: Timestamp) -> Result<Checked, Refusal> {
        let fact = market::fact(&spec.instance_type)
            .ok_or_else(|| Refusal::bad_value(format!("Invalid value '{}' for InstanceType.", spec.instance_type)))?;
        let template = &spec.template;
        let image = spec
            .image
            .as_ref()
            .or(template.image.as_ref())
            .ok_or_else(|| Refusal::missing("ImageId"))?;
        if !image.starts_with("ami-") {
            let message = format!("Invalid id: \"{image}\" (expecting \"ami-...\")");
            return Err(Refusal::new("InvalidAMIID.Malformed", message));
        }
        let missing = || {
            Refusal::new(
                "InvalidAMIID.NotFound",
                format!("The image id '[{image}]' does not exist"),
            )
        };
        let known = self.images.by_id.get(image).ok_or_else(missing)?;
        if !fact.runs_on(&known.architecture) {
            return Err(Refusal::bad_value(format!(
                "The architecture '{}' of the specified instance type does not match the architecture '{}' of the specified \
                 AMI. Specify an instance type and an AMI that have matching architectures, and try again.",
                fact.architectures.join(","),
                known.architecture
            )));
        }
        let (subnet, zone) = self.place(spec)?;
        if !market::is_sold(fact, &zone) {
            return Err(Refusal::new(
                "Unsupported",
                format!(
                    "Your requested instance type ({}) is not supported in your requested Availability Zone ({zone}).",
                    fact.name
                ),
            ));
        }
        if spec.capacity == Capacity::Spot && !fact.usage_classes.iter().any(|class| class == "spot") {
            let message = format!("The instance type '{}' is not supported for Spot.", fact.name);
            return Err(Refusal::new("Unsupported", message));
        }
        Ok(Checked {
            profile: self.profile_of(template, now)?,
            groups: self.groups_of(template)?,
            group: self.placement_group_of(template, fact)?,
            image: image.clone(),
            architecture: known.architecture.clone(),
            windows: known.windows,
            fact: Arc::clone(fact),
            subnet,
            zone,
            capacity: spec.capacity,
            template: template.clone(),
        })
    }

    fn place(&self, spec: &Spec) -> Result<(String, String), Refusal> {
        let of_interface = || {
            spec.template
                .interfaces
                .iter()
                .find_map(|interface| interface.subnet.as_ref())
        };
        let Some(id) = spec.subnet.as_ref().or_else(of_interface) else {
            let message = "No default subnet for this Availability Zone; the request must name a subnet";
            return Err(Refusal::new("MissingInput", message));
        };
        let missing = || {
            Refusal::new(
                "InvalidSubnetID.NotFound",
                format!("The subnet ID '{id}' does not exist"),
            )
        };
        let subnet = self.network.subnet(id).ok_or_else(missing)?;
        if spec.zone.as_ref().is_some_and(|zone| *zone != subnet.zone) {
            return Err(Refusal::bad_value(format!(
                "The subnet '{id}' is not in the Availability Zone of the request."
            )));
        }
        Ok((subnet.id.clone(), subnet.zone.clone()))
    }

    fn profile_of(&self, template: &TemplateData, now: Timestamp) -> Result<Option<(String, String)>, Refusal> {
        let (asked, found) = match &template.profile {
            None => return Ok(None),
            Some(ProfileRef::Name(name)) => (name, self.identity.profiles.get(name)),
            Some(ProfileRef::Arn(arn)) => {
                let mut profiles = self.identity.profiles.values();
                (arn, profiles.find(|profile| profile.arn == *arn))
            }
        };
        // IAM tells EC2 of new profiles with a delay.
        let found = found.filter(|profile| profile.created + self.timing.propagation <= now);
        let profile = found.ok_or_else(|| {
            Refusal::bad_value(format!(
                "Value ({asked}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
            ))
        })?;
        Ok(Some((profile.arn.clone(), profile.id.clone())))
    }

    fn groups_of(&self, template: &TemplateData) -> Result<Vec<(String, String)>, Refusal> {
        let of_interfaces = template
            .interfaces
            .first()
            .map_or(&[][..], |interface| &interface.groups);
        let ids = if of_interfaces.is_empty() {
            &template.groups[..]
        } else {
            of_interfaces
        };
        ids.iter()
            .map(|id| {
                let missing = || {
                    Refusal::new(
                        "InvalidGroup.NotFound",
                        format!("The security group '{id}' does not exist"),
                    )
                };
                let group = self.network.group(id).ok_or_else(missing)?;
                Ok((group.id.clone(), group.name.clone()))
            })
            .collect()
    }

    fn placement_group_of(
        &self,
        template: &TemplateData,
        fact: &InstanceType,
    ) -> Result<Option<PlacementGroup>, Refusal> {
        let placement = &template.placement;
        let Some(asked) = placement.group_id.as_ref().or(placement.group_name.as_ref()) else {
            return Ok(None);
        };
        let named = |group: &&PlacementGroup| group.id == *asked || group.name == *asked;
        let group = self.placement_groups.values().find(named).ok_or_else(|| {
            Refusal::new(
                "InvalidPlacementGroup.Unknown",
                format!("The Placement Group '{asked}' is unknown."),
            )
        })?;
        if !fact.placement_strategies.contains(&group.strategy) {
            return Err(Refusal::new(
                "Unsupported",
                format!(
                    "The instance type '{}' does not support the placement strategy '{}'.",
                    fact.name, group.strategy
                ),
            ));
        }
        Ok(Some(group.clone()))
    }
}

#[cfg(test)]
mod tests;
