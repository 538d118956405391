use async_trait::async_trait;
use jiff::Timestamp;

use super::{FakeAws, launched_cheapest};
use crate::{
    error::AwsError,
    ports::{
        DryLaunch, Ec2, Filter, FleetAnswer, FleetRequest, ImageInfo, ImageQuery, InstanceInfo, InstanceQuery,
        InstanceStatusInfo, InstanceTypeInfo, PlacementGroupInfo, PlacementGroupQuery, ReservationInfo,
        ReservationQuery, SecurityGroupInfo, SpotPrice, StateChange, StatusQuery, SubnetInfo, Tags, Template,
        TemplateData, TemplateKey, TemplateQuery, TypeOffering,
    },
};

/// Whether a thing with these fields and tags passes every filter. Fields that are not given pass.
fn passes(filters: &[Filter], fields: &[(&str, &str)], tags: &Tags) -> bool {
    filters.iter().all(|filter| {
        if let Some(key) = filter.name.strip_prefix("tag:") {
            return tags.get(key).is_some_and(|value| filter.values.contains(value));
        }
        if filter.name == "tag-key" {
            return filter.values.iter().any(|key| tags.contains_key(key));
        }
        let field = fields.iter().find(|(name, _)| *name == filter.name);
        field.is_none_or(|(_, value)| filter.values.iter().any(|wanted| wanted == value))
    })
}

#[async_trait]
impl Ec2 for FakeAws {
    async fn check_access(&self) -> Result<(), AwsError> {
        self.called("DescribeInstanceTypes").map(drop)
    }

    async fn instance_types(&self) -> Result<Vec<InstanceTypeInfo>, AwsError> {
        Ok(self.called("DescribeInstanceTypes")?.types.clone())
    }

    async fn type_offerings(&self) -> Result<Vec<TypeOffering>, AwsError> {
        Ok(self.called("DescribeInstanceTypeOfferings")?.offerings.clone())
    }

    async fn subnets(&self, filters: &[Filter]) -> Result<Vec<SubnetInfo>, AwsError> {
        let state = self.called("DescribeSubnets")?;
        let found = state
            .subnets
            .iter()
            .filter(|(subnet, tags)| passes(filters, &[("subnet-id", &subnet.id)], tags));
        Ok(found.map(|(subnet, _)| subnet.clone()).collect())
    }

    async fn security_groups(&self, filters: &[Filter]) -> Result<Vec<SecurityGroupInfo>, AwsError> {
        let state = self.called("DescribeSecurityGroups")?;
        let found = state
            .groups
            .iter()
            .filter(|(group, tags)| passes(filters, &[("group-id", &group.id), ("group-name", &group.name)], tags));
        Ok(found.map(|(group, _)| group.clone()).collect())
    }

    async fn images(&self, query: &ImageQuery) -> Result<Vec<ImageInfo>, AwsError> {
        let state = self.called("DescribeImages")?;
        let found = state
            .images
            .iter()
            .filter(|(image, tags)| passes(&query.filters, &[("image-id", &image.id), ("name", &image.name)], tags));
        Ok(found.map(|(image, _)| image.clone()).collect())
    }

    async fn capacity_reservations(&self, query: &ReservationQuery) -> Result<Vec<ReservationInfo>, AwsError> {
        let state = self.called("DescribeCapacityReservations")?;
        let all = state.reservations.iter();
        let found: Vec<ReservationInfo> = match query {
            ReservationQuery::Id(id) => all
                .filter(|(one, _)| one.id == *id)
                .map(|(one, _)| one.clone())
                .collect(),
            ReservationQuery::Matching(filters) => all
                .filter(|(one, tags)| {
                    let fields = [
                        ("owner-id", &*one.owner),
                        ("instance-match-criteria", &*one.match_criteria),
                    ];
                    passes(filters, &fields, tags)
                })
                .map(|(one, _)| one.clone())
                .collect(),
        };
        match query {
            ReservationQuery::Id(_) if found.is_empty() => Err(AwsError::new(
                "InvalidCapacityReservationId.NotFound",
                "no such reservation",
            )),
            _ => Ok(found),
        }
    }

    async fn placement_groups(&self, query: &PlacementGroupQuery) -> Result<Vec<PlacementGroupInfo>, AwsError> {
        let state = self.called("DescribePlacementGroups")?;
        let wanted = |group: &&PlacementGroupInfo| match query {
            PlacementGroupQuery::Id(id) => group.id == *id,
            PlacementGroupQuery::Name(name) => group.name == *name,
        };
        let found: Vec<PlacementGroupInfo> = state.placement_groups.iter().filter(wanted).cloned().collect();
        if found.is_empty() {
            return Err(AwsError::new("InvalidPlacementGroup.Unknown", "no such group"));
        }
        Ok(found)
    }

    async fn spot_prices(&self, _: Timestamp) -> Result<Vec<SpotPrice>, AwsError> {
        Ok(self.called("DescribeSpotPriceHistory")?.spot_prices.clone())
    }

    async fn launch_templates(&self, query: &TemplateQuery) -> Result<Vec<Template>, AwsError> {
        let state = self.called("DescribeLaunchTemplates")?;
        match query {
            TemplateQuery::Name(name) => match state.templates.get(name) {
                Some((template, ..)) => Ok(vec![template.clone()]),
                None => Err(AwsError::new(
                    "InvalidLaunchTemplateName.NotFoundException",
                    "no such template",
                )),
            },
            TemplateQuery::Matching(filters) => {
                let found = state
                    .templates
                    .values()
                    .filter(|(_, tags, _)| passes(filters, &[], tags));
                Ok(found.map(|(template, ..)| template.clone()).collect())
            }
        }
    }

    async fn create_launch_template(&self, name: &str, tags: &Tags, data: &TemplateData) -> Result<Template, AwsError> {
        let mut state = self.called("CreateLaunchTemplate")?;
        state.serial += 1;
        let template = Template {
            id: format!("lt-{:04}", state.serial),
            name: name.to_owned(),
        };
        let entry = (template.clone(), tags.clone(), data.clone());
        match state.templates.insert(name.to_owned(), entry) {
            Some(_) => Err(AwsError::new("InvalidLaunchTemplateName.AlreadyExistsException", name)),
            None => Ok(template),
        }
    }

    async fn delete_launch_template(&self, key: &TemplateKey) -> Result<(), AwsError> {
        let mut state = self.called("DeleteLaunchTemplate")?;
        let before = state.templates.len();
        state.templates.retain(|name, (template, ..)| match key {
            TemplateKey::Id(id) => template.id != *id,
            TemplateKey::Name(wanted) => name != wanted,
        });
        if state.templates.len() == before {
            return Err(AwsError::new("InvalidLaunchTemplateId.NotFound", "no such template"));
        }
        Ok(())
    }

    async fn create_fleet(&self, request: &FleetRequest) -> Result<FleetAnswer, AwsError> {
        let mut state = self.called("CreateFleet")?;
        state.fleets.push(request.clone());
        if request.dry_run {
            return Err(AwsError::new("DryRunOperation", "would have succeeded"));
        }
        if let Some(answer) = state.fleet_answers.pop_front() {
            return Ok(answer);
        }
        let token = request.client_token.clone();
        if let Some(answer) = token.as_ref().and_then(|token| state.fleets_by_token.get(token)) {
            return Ok(answer.clone());
        }
        let mut serial = state.serial;
        let answer = launched_cheapest(request, &state.exhausted, &mut serial);
        state.serial = serial;
        state.fleets_by_token.extend(token.map(|token| (token, answer.clone())));
        let security_groups = state.groups_of(request);
        let mut tags = request.tags.clone();
        tags.extend(state.template_tag(request));
        for group in &answer.instances {
            for id in &group.ids {
                let instance = InstanceInfo {
                    id: id.clone(),
                    state: "pending".to_owned(),
                    instance_type: group.instance_type.clone(),
                    zone: group.chosen.zone.clone().unwrap_or_default(),
                    image_id: group.chosen.image_id.clone().unwrap_or_default(),
                    subnet: group.chosen.subnet.clone(),
                    security_groups: security_groups.clone(),
                    tags: tags.clone(),
                    launched: Some(self.now()),
                    lifecycle: group.lifecycle.clone(),
                    tenancy: "default".to_owned(),
                    ..InstanceInfo::default()
                };
                state.instances.insert(id.clone(), instance);
            }
        }
        Ok(answer)
    }

    async fn try_launch(&self, request: &DryLaunch) -> Result<(), AwsError> {
        self.called("RunInstances")?.dry_launches.push(request.clone());
        Err(AwsError::new("DryRunOperation", "would have succeeded"))
    }

    async fn instances(&self, query: &InstanceQuery) -> Result<Vec<InstanceInfo>, AwsError> {
        let state = self.called("DescribeInstances")?;
        if let Some(missing) = query.ids.iter().find(|id| !state.instances.contains_key(*id)) {
            return Err(AwsError::new("InvalidInstanceID.NotFound", missing));
        }
        let found = state.instances.values().filter(|instance| {
            (query.ids.is_empty() || query.ids.contains(&instance.id))
                && passes(
                    &query.filters,
                    &[("instance-state-name", &instance.state)],
                    &instance.tags,
                )
        });
        Ok(found.cloned().collect())
    }

    async fn instance_status(&self, _: &StatusQuery) -> Result<Vec<InstanceStatusInfo>, AwsError> {
        Ok(self.called("DescribeInstanceStatus")?.statuses.clone())
    }

    async fn terminate_instances(&self, ids: &[String]) -> Result<Vec<StateChange>, AwsError> {
        let mut state = self.called("TerminateInstances")?;
        state.terminations.push(ids.to_vec());
        let mut changes = Vec::new();
        for id in ids {
            let Some(instance) = state.instances.get_mut(id) else {
                return Err(AwsError::new("InvalidInstanceID.NotFound", id));
            };
            instance.state = "shutting-down".to_owned();
            changes.push(StateChange {
                id: id.clone(),
                state: instance.state.clone(),
            });
        }
        Ok(changes)
    }

    async fn create_tags(&self, instance: &str, tags: &Tags) -> Result<(), AwsError> {
        let mut state = self.called("CreateTags")?;
        let Some(known) = state.instances.get_mut(instance) else {
            return Err(AwsError::new("InvalidInstanceID.NotFound", instance));
        };
        known.tags.extend(tags.clone());
        Ok(())
    }
}
