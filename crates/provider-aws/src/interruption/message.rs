//! EventBridge events, as the interruption queue carries them.

use provider::NoticeKind;
use serde::Deserialize;
use serde_json::Value;

/// What a message says about which instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    pub kind: NoticeKind,
    pub instances: Vec<String>,
}

/// A message that is not an event at all.
#[derive(Debug, thiserror::Error)]
#[error("the message is not an EventBridge event")]
pub struct Unreadable(#[source] serde_json::Error);

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    version: String,
    #[serde(default)]
    source: String,
    #[serde(default, rename = "detail-type")]
    detail_type: String,
    #[serde(default)]
    detail: Value,
}

/// Reads a message. `None` means that it concerns nobody here; it is as good as handled.
pub fn read(body: &str) -> Result<Option<Announcement>, Unreadable> {
    if body.is_empty() {
        return Ok(None);
    }
    let event: Event = serde_json::from_str(body).map_err(Unreadable)?;
    if event.version != "0" {
        return Ok(None);
    }
    let kind = match (event.source.as_str(), event.detail_type.as_str()) {
        ("aws.ec2", "EC2 Spot Instance Interruption Warning") => NoticeKind::SpotInterrupted,
        ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning") => NoticeKind::ReservationInterrupted,
        ("aws.ec2", "EC2 Instance Rebalance Recommendation") => NoticeKind::RebalanceRecommended,
        ("aws.ec2", "EC2 Instance State-change Notification") => match state_change(&event.detail) {
            Some(kind) => kind,
            None => return Ok(None),
        },
        ("aws.health", "AWS Health Event") if is_scheduled_change(&event.detail) => NoticeKind::ScheduledChange,
        _ => return Ok(None),
    };
    let instances = match kind {
        NoticeKind::ScheduledChange => affected(&event.detail),
        _ => text(&event.detail, "instance-id").into_iter().collect(),
    };
    Ok(Some(Announcement { kind, instances }))
}

fn text(detail: &Value, field: &str) -> Option<String> {
    detail.get(field)?.as_str().map(str::to_owned)
}

/// Instances that start up are no news.
fn state_change(detail: &Value) -> Option<NoticeKind> {
    match text(detail, "state")?.to_lowercase().as_str() {
        "stopping" | "stopped" => Some(NoticeKind::InstanceStopped),
        "shutting-down" | "terminated" => Some(NoticeKind::InstanceTerminated),
        _ => None,
    }
}

fn is_scheduled_change(detail: &Value) -> bool {
    text(detail, "service").as_deref() == Some("EC2")
        && text(detail, "eventTypeCategory").as_deref() == Some("scheduledChange")
}

fn affected(detail: &Value) -> Vec<String> {
    let entities = detail.get("affectedEntities").and_then(Value::as_array);
    let entities = entities.into_iter().flatten();
    entities.filter_map(|entity| text(entity, "entityValue")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(source: &str, detail_type: &str, detail: Value) -> String {
        json!({"version": "0", "source": source, "detail-type": detail_type, "detail": detail}).to_string()
    }

    fn kind(source: &str, detail_type: &str, detail: Value) -> Option<(NoticeKind, Vec<String>)> {
        let read = read(&event(source, detail_type, detail)).unwrap();
        read.map(|announcement| (announcement.kind, announcement.instances))
    }

    /// AW24.15.1, AW24.15.2
    #[test]
    fn messages_are_told_apart() {
        let one = || json!({"instance-id": "i-1"});
        let state = |state: &str| json!({"instance-id": "i-1", "state": state});
        let ids = vec!["i-1".to_owned()];
        let ec2 = |kind_: &str, detail| kind("aws.ec2", kind_, detail);
        use NoticeKind::{
            InstanceStopped, InstanceTerminated, RebalanceRecommended, ReservationInterrupted, ScheduledChange,
            SpotInterrupted,
        };
        let change = "EC2 Instance State-change Notification";
        assert_eq!(
            ec2("EC2 Spot Instance Interruption Warning", one()),
            Some((SpotInterrupted, ids.clone()))
        );
        assert_eq!(
            ec2("EC2 Capacity Reservation Instance Interruption Warning", one()),
            Some((ReservationInterrupted, ids.clone()))
        );
        assert_eq!(
            ec2("EC2 Instance Rebalance Recommendation", one()),
            Some((RebalanceRecommended, ids.clone()))
        );
        for (word, expected) in [
            ("stopping", Some(InstanceStopped)),
            ("Stopped", Some(InstanceStopped)),
            ("shutting-down", Some(InstanceTerminated)),
            ("terminated", Some(InstanceTerminated)),
            ("running", None),
            ("pending", None),
        ] {
            assert_eq!(ec2(change, state(word)).map(|(kind, _)| kind), expected, "{word}");
        }
        let health = |service: &str, category: &str| {
            let entities = json!([{"entityValue": "i-1"}, {"entityValue": "i-2"}]);
            let detail = json!({"service": service, "eventTypeCategory": category, "affectedEntities": entities});
            kind("aws.health", "AWS Health Event", detail)
        };
        assert_eq!(
            health("EC2", "scheduledChange"),
            Some((ScheduledChange, vec!["i-1".to_owned(), "i-2".to_owned()]))
        );
        assert_eq!(health("EC2", "issue"), None);
        assert_eq!(health("RDS", "scheduledChange"), None);
    }

    /// AW24.15.2
    #[test]
    fn what_is_no_event_is_told_from_what_concerns_nobody() {
        assert!(read("not json").is_err());
        assert!(read("[1]").is_err());
        assert_eq!(read("").unwrap(), None);
        assert_eq!(read("{}").unwrap(), None);
        assert_eq!(kind("aws.s3", "Object Created", json!({})), None);
        let other_version =
            event("aws.ec2", "EC2 Spot Instance Interruption Warning", json!({})).replace("\"0\"", "\"1\"");
        assert_eq!(read(&other_version).unwrap(), None);
    }
}
