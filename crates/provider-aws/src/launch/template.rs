//! Launch templates: what an instance is launched with, whatever its type and zone turn out to be.

mod bootstrap;
mod interface;
mod volume;

use std::collections::{BTreeMap, BTreeSet};

use api::{
    aws::{Ami, AmiFamily, EC2NodeClass},
    hash::fnv1,
    labels::aws,
};
use model::{CapacityType, InstanceType, Labels, Requirements, Taint};

use super::label;
use crate::{
    class_view,
    instance_type::{EFA, Reserved},
    ports::{MarketType, Metadata, Placement, ReservationPreference, Tags, TemplateData},
    user_data::UserDataError,
};

pub use bootstrap::ClusterFacts;
pub use volume::UnreadableSize;

/// Regions whose EC2 does not know the metadata service's IPv6 switch.
const WITHOUT_METADATA_IPV6: &[&str] = &[
    "us-iso-east-1",
    "us-iso-west-1",
    "us-isob-east-1",
    "us-isob-west-1",
    "us-isof-south-1",
    "us-isof-east-1",
];

/// Why a class yields no template.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    #[error("the node class has no images")]
    NoImages,
    #[error(
        "no image of the node class runs on the instance types that are asked for: {images}; select images of their \
         architecture in amiSelectorTerms, or other types in the NodePool"
    )]
    NoImageFits { images: String },
    #[error("the node class has no security groups")]
    NoSecurityGroups,
    #[error("user data cannot be made")]
    UserData(#[source] UserDataError),
    #[error("a volume cannot be read")]
    Volume(#[source] UnreadableSize),
}

/// What a launch asks for, as far as templates depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    pub class: &'a EC2NodeClass,
    pub cluster: &'a ClusterFacts,
    pub capacity_type: CapacityType,
    pub tenancy: &'a str,
    pub labels: &'a Labels,
    pub taints: &'a [Taint],
    pub startup_taints: &'a [Taint],
    pub requirements: &'a Requirements,
    pub wants_efa: bool,
    pub wants_enclave: bool,
    pub tags: &'a Tags,
    pub placement_group: Option<&'a str>,
    /// The partition of the group to launch into, unless EC2 is to choose.
    pub partition: Option<u32>,
    pub reserved_capacity: bool,
    /// What is set aside on each type; nothing on those that are not mentioned.
    pub reserved: &'a BTreeMap<String, Reserved>,
}

/// One template, and the types that it is good for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub name: String,
    pub tags: Tags,
    pub data: TemplateData,
    pub types: Vec<String>,
    /// The reservation that instances go to.
    pub reservation: Option<String>,
}

/// What types have to share to share a template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    image: String,
    efa: i64,
    pods: i64,
    reserved: Reserved,
    reservation: Option<Reservation>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reservation {
    id: String,
    kind: String,
    interruptible: bool,
}

/// The templates of a launch. Types without an image are left out.
pub fn plans(types: &[InstanceType], order: Order<'_>) -> Result<Vec<Plan>, TemplateError> {
    if class_view::amis(order.class).is_empty() {
        return Err(TemplateError::NoImages);
    }
    if class_view::security_groups(order.class).is_empty() {
        return Err(TemplateError::NoSecurityGroups);
    }
    let mut groups: BTreeMap<Group, Vec<String>> = BTreeMap::new();
    for shape in types {
        let Some(image) = class_view::ami_for(order.class, &shape.requirements) else {
            continue;
        };
        for group in groups_of(shape, image, order) {
            groups.entry(group).or_default().push(shape.name.to_string());
        }
    }
    if groups.is_empty() {
        let images = class_view::images_named(order.class);
        return Err(TemplateError::NoImageFits { images });
    }
    groups
        .into_iter()
        .map(|(group, types)| plan(&group, types, order))
        .collect()
}

fn groups_of(shape: &InstanceType, image: &Ami, order: Order<'_>) -> BTreeSet<Group> {
    let count = |resource: &str| shape.capacity.get(resource).value_ceil();
    let group = |reservation| Group {
        image: image.id.clone(),
        efa: if order.wants_efa { count(EFA) } else { 0 },
        pods: count("pods"),
        reserved: order.reserved.get(shape.name.as_str()).cloned().unwrap_or_default(),
        reservation,
    };
    if order.capacity_type != CapacityType::Reserved {
        return BTreeSet::from([group(None)]);
    }
    let reserved = shape
        .offerings_within(order.requirements)
        .filter(|offering| offering.capacity_type == CapacityType::Reserved);
    let reservation = |offering: &model::Offering| Reservation {
        id: label(offering, aws::CAPACITY_RESERVATION_ID)
            .unwrap_or_default()
            .to_owned(),
        kind: label(offering, aws::CAPACITY_RESERVATION_TYPE)
            .unwrap_or("default")
            .to_owned(),
        interruptible: label(offering, aws::CAPACITY_RESERVATION_INTERRUPTIBLE) == Some("true"),
    };
    reserved.map(|offering| group(Some(reservation(offering)))).collect()
}

fn plan(group: &Group, types: Vec<String>, order: Order<'_>) -> Result<Plan, TemplateError> {
    let spec = &order.class.spec;
    let bootstrap = bootstrap::bootstrap(group, order);
    let mut data = TemplateData {
        tags: resource_tags(order),
        volumes: volume::volumes(order.class).map_err(TemplateError::Volume)?,
        instance_profile: class_view::instance_profile(order.class).unwrap_or_default().to_owned(),
        detailed_monitoring: spec.detailed_monitoring.unwrap_or(false),
        image_id: group.image.clone(),
        user_data: String::new(),
        metadata: metadata(order),
        interfaces: interface::interfaces(order.class, group.efa, order.cluster.is_ipv6()),
        placement: Placement {
            tenancy: order.tenancy.to_owned(),
            group_id: order.placement_group.map(str::to_owned),
            partition: order.partition,
        },
        enclaves: order.wants_enclave,
        nested_virtualization: spec
            .cpu_options
            .as_ref()
            .and_then(|options| options.nested_virtualization.clone()),
        reservation: order.reserved_capacity.then(|| preference(group)),
        market: group
            .reservation
            .as_ref()
            .filter(|_| order.reserved_capacity)
            .and_then(market),
    };
    let name = name(&bootstrap, &data, order);
    data.user_data = bootstrap.encoded().map_err(TemplateError::UserData)?;
    Ok(Plan {
        name,
        tags: order.tags.clone(),
        data,
        types,
        reservation: group.reservation.as_ref().map(|reservation| reservation.id.clone()),
    })
}

/// Instances and volumes are tagged by the fleet; what it cannot tag is tagged by the template.
fn resource_tags(order: Order<'_>) -> Vec<(&'static str, Tags)> {
    let mut tags = vec![("network-interface", order.tags.clone())];
    if order.capacity_type == CapacityType::Spot {
        tags.push(("spot-instances-request", order.tags.clone()));
    }
    tags
}

fn metadata(order: Order<'_>) -> Metadata {
    let knows_ipv6 = !WITHOUT_METADATA_IPV6.contains(&order.cluster.region.as_str());
    let (endpoint, ipv6, hop_limit, tokens) = match &order.class.spec.metadata_options {
        Some(options) => (
            options.http_endpoint.as_ref().map(ToString::to_string),
            options.http_protocol_ipv6.as_ref().map(ToString::to_string),
            options.http_put_response_hop_limit,
            options.http_tokens.as_ref().map(ToString::to_string),
        ),
        None => {
            let ipv6 = if order.cluster.is_ipv6() { "enabled" } else { "disabled" };
            let tokens = Some("required".to_owned());
            (Some("disabled".to_owned()), Some(ipv6.to_owned()), Some(2), tokens)
        }
    };
    Metadata {
        endpoint,
        ipv6: ipv6.filter(|_| knows_ipv6),
        hop_limit,
        tokens,
    }
}

fn preference(group: &Group) -> ReservationPreference {
    match &group.reservation {
        Some(reservation) => ReservationPreference::Only(reservation.id.clone()),
        None => ReservationPreference::None,
    }
}

fn market(reservation: &Reservation) -> Option<MarketType> {
    match (reservation.kind.as_str(), reservation.interruptible) {
        ("capacity-block", _) => Some(MarketType::CapacityBlock),
        (_, true) => Some(MarketType::InterruptibleReservation),
        _ => None,
    }
}

/// The same for equal contents, whatever the order of lists in them.
fn name(bootstrap: &crate::user_data::Bootstrap, data: &TemplateData, order: Order<'_>) -> String {
    let mut bootstrap = bootstrap.clone();
    bootstrap.taints.sort();
    let mut data = data.clone();
    for interface in &mut data.interfaces {
        interface.groups.sort();
    }
    data.volumes.sort();
    let contents = match bootstrap.family {
        // The user's own text is all that such an instance is told, so that types of any density share a template.
        AmiFamily::Custom => format!("{:?} {data:?} {:?}", bootstrap.custom, order.tags),
        _ => format!("{bootstrap:?} {data:?} {:?}", order.tags),
    };
    format!("karpenter.k8s.aws/{}", fnv1(contents.as_bytes()))
}

#[cfg(test)]
mod tests;
