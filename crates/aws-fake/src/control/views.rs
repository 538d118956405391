//! What the control page shows.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    fake::State,
    region::{
        Region,
        instances::{Instance, Joined},
    },
};

/// The calls so far, or those of one service or action: `?service=ec2&action=CreateFleet`.
pub fn calls(state: &State, query: &str) -> Value {
    let wanted: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let admits = |name: &str, value: &str| wanted.iter().all(|(key, asked)| key != name || asked == value);
    let calls = state.record.calls();
    let found = calls.filter(|call| admits("service", call.service) && admits("action", &call.action));
    json!(found.collect::<Vec<_>>())
}

pub fn region(region: &Region) -> Value {
    let subnets = region.network.subnets.iter().map(
        |subnet| json!({"id": subnet.id, "zone": subnet.zone, "zoneId": subnet.zone_id, "available": subnet.available}),
    );
    let groups = region
        .network
        .groups
        .iter()
        .map(|group| json!({"id": group.id, "name": group.name}));
    json!({
        "region": region.plan.region,
        "account": region.plan.account,
        "cluster": region.plan.cluster,
        "version": region.plan.version,
        "vpc": region.network.vpc,
        "subnets": subnets.collect::<Vec<_>>(),
        "securityGroups": groups.collect::<Vec<_>>(),
        "roles": region.identity.roles.keys().collect::<Vec<_>>(),
        "instanceProfiles": region.identity.profiles.keys().collect::<Vec<_>>(),
        "launchTemplates": region.templates.values().map(|template| &template.name).collect::<Vec<_>>(),
        "capacityReservations": region.reservations.keys().collect::<Vec<_>>(),
        "placementGroups": region.placement_groups.keys().collect::<Vec<_>>(),
        "queue": {"name": region.queue.name, "messages": region.queue.depth()},
    })
}

pub fn instances(region: &Region, now: Timestamp) -> Value {
    let mut all: Vec<&Instance> = region.instances.values().collect();
    all.sort_by(|one, other| (one.launched, &one.id).cmp(&(other.launched, &other.id)));
    json!(
        all.into_iter()
            .map(|instance| view(instance, region, now))
            .collect::<Vec<_>>()
    )
}

fn view(instance: &Instance, region: &Region, now: Timestamp) -> Value {
    let (joined, reason) = match &instance.joined {
        Joined::NotYet | Joined::Left => (Value::Null, Value::Null),
        Joined::As(node) => (json!(node), Value::Null),
        Joined::Never(reason) => (Value::Null, json!(reason)),
    };
    let user_data = instance.user_data.as_ref().and_then(|text| STANDARD.decode(text).ok());
    json!({
        "id": instance.id,
        "type": instance.fact.name,
        "zone": instance.zone,
        "state": instance.state(now).name(),
        "lifecycle": instance.capacity.lifecycle(),
        "image": instance.image,
        "privateDnsName": instance.private_dns(&region.plan.region),
        "launched": instance.launched,
        "tags": instance.tags,
        "userData": user_data.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        "node": joined,
        "doesNotJoin": reason,
    })
}
