//! What each call needs: the actions, the resources and what conditions can look at, as AWS documents them.

use std::collections::BTreeMap;

use super::policy::Ask;
use crate::{
    region::{
        Region, Tags,
        templates::{ProfileRef, Template, TemplateData, TemplateRef},
    },
    wire::{
        Call, Parameters, Service,
        ec2::{tag_specifications, tags},
        query::Params,
    },
};

/// All that has to be allowed for a call to be carried out.
pub fn of(region: &Region, call: &Call) -> Vec<Ask> {
    let account = Account(region);
    let whole = |resource: String| vec![account.ask(call.service.name(), &call.action, resource, Seen::default())];
    match (call.service, &call.parameters) {
        // Anybody may ask who they are.
        (Service::Sts, _) => Vec::new(),
        (Service::Ec2, Parameters::Form(params)) => account.ec2(&call.action, params),
        (Service::Iam, Parameters::Form(params)) => account.iam(&call.action, params),
        (Service::Ssm, Parameters::Json(params)) => {
            let name = params["Name"].as_str().unwrap_or_default();
            let owner = if name.starts_with("/aws/") {
                ""
            } else {
                &region.plan.account
            };
            whole(format!("arn:aws:ssm:{}:{owner}:parameter{name}", region.plan.region))
        }
        (Service::Sqs, _) => {
            let plan = &region.plan;
            whole(format!(
                "arn:aws:sqs:{}:{}:{}",
                plan.region, plan.account, region.queue.name
            ))
        }
        (Service::Eks, Parameters::Json(params)) => {
            let plan = &region.plan;
            let text = |name: &str| params[name].as_str();
            let name = text("name").or_else(|| text("clusterName")).unwrap_or_default();
            let place = format!("arn:aws:eks:{}:{}", plan.region, plan.account);
            whole(match text("principalArn") {
                None => format!("{place}:cluster/{name}"),
                Some(principal) => {
                    let role = principal.rsplit('/').next().unwrap_or_default();
                    format!("{place}:access-entry/{name}/role/{}/{role}/any", plan.account)
                }
            })
        }
        (Service::ZonalShift, Parameters::Json(params)) => {
            let resource = params["resourceIdentifier"].as_str().unwrap_or_default().to_owned();
            let seen = Seen {
                extra: vec![("arc-zonal-shift:ResourceIdentifier", resource.clone())],
                ..Seen::default()
            };
            vec![account.ask(call.service.name(), &call.action, resource, seen)]
        }
        _ => whole("*".to_owned()),
    }
}

/// What conditions can look at besides the region.
#[derive(Default)]
struct Seen<'a> {
    request_tags: Option<&'a Tags>,
    resource_tags: Option<&'a Tags>,
    extra: Vec<(&'static str, String)>,
}

struct Account<'a>(&'a Region);

impl Account<'_> {
    fn ask(&self, service: &str, action: &str, resource: String, seen: Seen<'_>) -> Ask {
        let mut context = BTreeMap::from([("aws:RequestedRegion".to_owned(), vec![self.0.plan.region.clone()])]);
        for (key, value) in seen.request_tags.into_iter().flatten() {
            context.insert(format!("aws:RequestTag/{key}"), vec![value.clone()]);
        }
        if let Some(tags) = seen.request_tags.filter(|tags| !tags.is_empty()) {
            context.insert("aws:TagKeys".to_owned(), tags.keys().cloned().collect());
        }
        for (key, value) in seen.resource_tags.into_iter().flatten() {
            context.insert(format!("aws:ResourceTag/{key}"), vec![value.clone()]);
            context.insert(format!("{service}:ResourceTag/{key}"), vec![value.clone()]);
        }
        for (key, value) in seen.extra {
            context.insert(key.to_owned(), vec![value]);
        }
        Ask {
            action: format!("{service}:{action}"),
            resource,
            context,
        }
    }

    fn arn(&self, kind: &str, id: &str) -> String {
        let plan = &self.0.plan;
        // Public resources belong to no account.
        let account = if matches!(kind, "image" | "snapshot") {
            ""
        } else {
            &plan.account
        };
        format!("arn:aws:ec2:{}:{account}:{kind}/{id}", plan.region)
    }

    fn ec2(&self, action: &str, params: &Params) -> Vec<Ask> {
        let ask = |kind: &str, id: &str, seen: Seen<'_>| self.ask("ec2", action, self.arn(kind, id), seen);
        match action {
            "CreateLaunchTemplate" => self.creation(action, "CreateLaunchTemplate", params, &["launch-template"]),
            "DeleteLaunchTemplate" => {
                let template = self.template(params);
                let id = template.map_or("*", |template| template.id.as_str());
                let seen = Seen {
                    resource_tags: template.map(|template| &template.tags),
                    ..Seen::default()
                };
                vec![ask("launch-template", id, seen)]
            }
            "TerminateInstances" => {
                let ids = params.texts("InstanceId");
                let each = ids.iter().map(|id| {
                    let seen = Seen {
                        resource_tags: self.instance_tags(id),
                        ..Seen::default()
                    };
                    ask("instance", id, seen)
                });
                each.collect()
            }
            "CreateTags" => {
                let (ids, tags) = (params.texts("ResourceId"), tags(params));
                let each = ids.iter().map(|id| {
                    let seen = Seen {
                        request_tags: Some(&tags),
                        resource_tags: self.instance_tags(id),
                        ..Seen::default()
                    };
                    ask(kind_of(id), id, seen)
                });
                each.collect()
            }
            "CreateFleet" => {
                let mut asks = self.creation(action, action, params, &["fleet"]);
                for config in params.list("LaunchTemplateConfigs") {
                    let template = config
                        .get("LaunchTemplateSpecification")
                        .and_then(|named| self.template(named));
                    asks.extend(self.launch("CreateFleet", params, template));
                }
                let overrides = params
                    .list("LaunchTemplateConfigs")
                    .into_iter()
                    .flat_map(|config| config.list("Overrides"));
                asks.extend(self.places(action, overrides));
                asks
            }
            "RunInstances" => {
                let template = params.get("LaunchTemplate").and_then(|named| self.template(named));
                let mut asks = self.launch(action, params, template);
                asks.extend(self.places(action, params.list("NetworkInterface").into_iter().chain([params])));
                asks
            }
            _ => vec![self.ask("ec2", action, "*".to_owned(), Seen::default())],
        }
    }

    /// Making resources of these kinds, and tagging them on the way.
    fn creation(&self, action: &str, create_action: &str, params: &Params, kinds: &[&str]) -> Vec<Ask> {
        let specified = tag_specifications(params);
        let mut asks = Vec::new();
        for kind in kinds {
            let tags = specified.iter().find(|(of, _)| of == kind).map(|(_, tags)| tags);
            let seen = |extra| Seen {
                request_tags: tags,
                resource_tags: None,
                extra,
            };
            asks.push(self.ask("ec2", action, self.arn(kind, "*"), seen(Vec::new())));
            if tags.is_some_and(|tags| !tags.is_empty()) {
                let extra = vec![("ec2:CreateAction", create_action.to_owned())];
                asks.push(self.ask("ec2", "CreateTags", self.arn(kind, "*"), seen(extra)));
            }
        }
        asks
    }

    /// Launching instances from a template: the template, what is made, and the role that is handed on.
    fn launch(&self, create_action: &str, params: &Params, template: Option<&Template>) -> Vec<Ask> {
        let mut asks = self.creation("RunInstances", create_action, params, &["instance", "volume"]);
        let Some(template) = template else { return asks };
        let of_template = |kind: &str| {
            template
                .data
                .tags
                .iter()
                .find(|(of, _)| of == kind)
                .map(|(_, tags)| tags)
        };
        let own = tag_specifications(params);
        let of_call = own
            .iter()
            .find(|(of, _)| of == "network-interface")
            .map(|(_, tags)| tags);
        let tags = of_call.or_else(|| of_template("network-interface"));
        asks.extend(self.made("network-interface", create_action, tags));
        if params.text("TargetCapacitySpecification.DefaultTargetCapacityType") == Some("spot") {
            let tags = of_template("spot-instances-request");
            asks.extend(self.made("spot-instances-request", create_action, tags));
        }
        for action in std::collections::BTreeSet::from(["RunInstances", create_action]) {
            let seen = Seen {
                resource_tags: Some(&template.tags),
                ..Seen::default()
            };
            asks.push(self.ask("ec2", action, self.arn("launch-template", &template.id), seen));
        }
        let used = used_by(&template.data).into_iter();
        asks.extend(used.map(|(kind, id)| self.ask("ec2", "RunInstances", self.arn(kind, id), Seen::default())));
        asks.extend(self.role_of(template).map(|role| self.passing(role)));
        asks
    }

    /// Something that comes into being with an instance, and its tags.
    fn made(&self, kind: &str, create_action: &str, tags: Option<&Tags>) -> Vec<Ask> {
        let seen = |extra| Seen {
            request_tags: tags,
            resource_tags: None,
            extra,
        };
        let mut asks = vec![self.ask("ec2", "RunInstances", self.arn(kind, "*"), seen(Vec::new()))];
        if tags.is_some_and(|tags| !tags.is_empty()) {
            let extra = vec![("ec2:CreateAction", create_action.to_owned())];
            asks.push(self.ask("ec2", "CreateTags", self.arn(kind, "*"), seen(extra)));
        }
        asks
    }

    fn places<'p>(&self, action: &str, overrides: impl IntoIterator<Item = &'p Params>) -> Vec<Ask> {
        let subnets: std::collections::BTreeSet<&str> =
            overrides.into_iter().filter_map(|over| over.text("SubnetId")).collect();
        let ask = |subnet| self.ask("ec2", action, self.arn("subnet", subnet), Seen::default());
        subnets.into_iter().map(ask).collect()
    }

    fn template(&self, named: &Params) -> Option<&Template> {
        let id = named.text("LaunchTemplateId").map(|id| TemplateRef::Id(id.to_owned()));
        let name = || {
            named
                .text("LaunchTemplateName")
                .map(|name| TemplateRef::Name(name.to_owned()))
        };
        self.0.template(&id.or_else(name)?, jiff::Timestamp::MAX).ok()
    }

    fn instance_tags(&self, id: &str) -> Option<&Tags> {
        self.0.instances.get(id).map(|instance| &instance.tags)
    }

    fn iam(&self, action: &str, params: &Params) -> Vec<Ask> {
        let account = &self.0.plan.account;
        let name = params.text("InstanceProfileName").unwrap_or_default();
        let known = self.0.identity.profiles.get(name);
        let given: Tags = params
            .list("Tags")
            .into_iter()
            .filter_map(|tag| {
                Some((
                    tag.text("Key")?.to_owned(),
                    tag.text("Value").unwrap_or_default().to_owned(),
                ))
            })
            .collect();
        let resource = match action {
            "ListInstanceProfiles" => format!("arn:aws:iam::{account}:instance-profile/"),
            "GetRole" => format!(
                "arn:aws:iam::{account}:role/{}",
                params.text("RoleName").unwrap_or_default()
            ),
            _ => known.map_or_else(
                || {
                    format!(
                        "arn:aws:iam::{account}:instance-profile{}{name}",
                        params.text("Path").unwrap_or("/")
                    )
                },
                |profile| profile.arn.clone(),
            ),
        };
        let seen = Seen {
            request_tags: Some(&given),
            resource_tags: known.map(|profile| &profile.tags),
            extra: Vec::new(),
        };
        let mut asks = vec![self.ask("iam", action, resource.clone(), seen)];
        if action == "CreateInstanceProfile" && !given.is_empty() {
            // Who makes a profile with tags also tags it; the tags are taken to be on it already.
            let seen = Seen {
                request_tags: Some(&given),
                resource_tags: Some(&given),
                extra: Vec::new(),
            };
            asks.push(self.ask("iam", "TagInstanceProfile", resource, seen));
        }
        if action == "AddRoleToInstanceProfile" {
            asks.push(self.passing(params.text("RoleName").unwrap_or_default()));
        }
        asks
    }

    /// Handing a role to EC2.
    fn passing(&self, role: &str) -> Ask {
        let seen = Seen {
            extra: vec![("iam:PassedToService", "ec2.amazonaws.com".to_owned())],
            ..Seen::default()
        };
        let resource = format!("arn:aws:iam::{}:role/{role}", self.0.plan.account);
        self.ask("iam", "PassRole", resource, seen)
    }

    /// The role that instances of the template get.
    fn role_of(&self, template: &Template) -> Option<&str> {
        let profiles = &self.0.identity.profiles;
        let profile = match template.data.profile.as_ref()? {
            ProfileRef::Name(name) => profiles.get(name),
            ProfileRef::Arn(arn) => profiles.values().find(|profile| profile.arn == *arn),
        };
        profile?.role.as_deref()
    }
}

/// What instances of a template are made of and where they go.
fn used_by(data: &TemplateData) -> Vec<(&'static str, &str)> {
    let mut used: Vec<(&str, &str)> = Vec::new();
    used.extend(data.image.iter().map(|id| ("image", id.as_str())));
    for interface in &data.interfaces {
        used.extend(interface.groups.iter().map(|id| ("security-group", id.as_str())));
    }
    for volume in &data.volumes {
        used.extend(volume.snapshot.iter().map(|id| ("snapshot", id.as_str())));
    }
    let reservation = data.reservation.target.iter();
    used.extend(reservation.map(|id| ("capacity-reservation", id.as_str())));
    let group = data.placement.group_id.iter();
    used.extend(group.map(|id| ("placement-group", id.as_str())));
    used
}

fn kind_of(id: &str) -> &'static str {
    match id.split_once('-').map_or("", |(kind, _)| kind) {
        "i" => "instance",
        "lt" => "launch-template",
        "subnet" => "subnet",
        "sg" => "security-group",
        "cr" => "capacity-reservation",
        "pg" => "placement-group",
        _ => "*",
    }
}
