//! Instances that EC2 itself finds ill.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::ports::{Filter, InstanceStatusInfo, StatusDetail, StatusQuery};

/// Short trouble passes; nodes are not given up for it.
const TOLERATED: SignedDuration = SignedDuration::from_secs(120);

const EVENTS: [&str; 5] = [
    "instance-reboot",
    "system-reboot",
    "system-maintenance",
    "instance-retirement",
    "instance-stop",
];

/// What is wrong with an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatusCategory {
    /// Its software or network does not answer.
    Instance,
    /// The hardware under it is ill.
    System,
    /// EC2 has planned to do something to it.
    Event,
}

impl StatusCategory {
    /// The reason under which claims are disrupted, which dashboards know.
    pub fn reason(self) -> &'static str {
        match self {
            StatusCategory::Instance => "instance_status",
            StatusCategory::System => "system_status",
            StatusCategory::Event => "event_status",
        }
    }

    /// Whether pods get no time to move: nothing on the machine would notice.
    pub fn is_forceful(self) -> bool {
        self != StatusCategory::Event
    }
}

/// An instance that should go, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unhealthy {
    pub instance: String,
    pub categories: BTreeSet<StatusCategory>,
}

impl Unhealthy {
    pub fn is_forceful(&self) -> bool {
        self.categories.iter().any(|category| category.is_forceful())
    }
}

/// The three listings whose union is wanted; EC2 would take their filters together for "and".
pub fn queries() -> [StatusQuery; 3] {
    [
        Filter::new("instance-status.status", ["impaired"]),
        Filter::new("system-status.status", ["impaired"]),
        Filter::new("event.code", EVENTS),
    ]
    .map(|filter| StatusQuery { filters: vec![filter] })
}

/// What is wrong, per instance. The first record of an instance counts.
pub fn unhealthy(statuses: &[InstanceStatusInfo], now: Timestamp) -> Vec<Unhealthy> {
    let mut first: BTreeMap<&str, &InstanceStatusInfo> = BTreeMap::new();
    for status in statuses {
        first.entry(&status.id).or_insert(status);
    }
    let has_failed = |details: &[StatusDetail]| {
        let long = |since: Timestamp| now.duration_since(since) >= TOLERATED;
        details
            .iter()
            .any(|detail| detail.status == "failed" && detail.impaired_since.is_some_and(long))
    };
    let judged = first.into_values().map(|status| {
        let is_planned = status.events.iter().any(|event| EVENTS.contains(&event.code.as_str()));
        let found = [
            (has_failed(&status.instance), StatusCategory::Instance),
            (has_failed(&status.system), StatusCategory::System),
            (is_planned, StatusCategory::Event),
        ];
        Unhealthy {
            instance: status.id.clone(),
            categories: found
                .into_iter()
                .filter(|(is, _)| *is)
                .map(|(_, category)| category)
                .collect(),
        }
    });
    judged.filter(|one| !one.categories.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::EventInfo;

    fn detail(status: &str, since: i64) -> Vec<StatusDetail> {
        vec![StatusDetail {
            status: status.to_owned(),
            impaired_since: Some(Timestamp::from_second(since).unwrap()),
        }]
    }

    fn shown(status: InstanceStatusInfo) -> String {
        let status = InstanceStatusInfo {
            id: "i-1".to_owned(),
            ..status
        };
        let found = unhealthy(
            &[status.clone(), InstanceStatusInfo::default()],
            Timestamp::from_second(1000).unwrap(),
        );
        let text = |one: &Unhealthy| {
            let reasons: Vec<&str> = one.categories.iter().map(|category| category.reason()).collect();
            format!("{}{}", reasons.join("+"), if one.is_forceful() { " now" } else { "" })
        };
        found.iter().map(text).collect()
    }

    /// AW24.15.5, AW24.15.7
    #[test]
    fn lasting_failures_are_forceful_and_planned_events_are_not() {
        let event = || {
            vec![EventInfo {
                code: "instance-retirement".to_owned(),
            }]
        };
        let none = InstanceStatusInfo::default;
        let table = [
            (none(), ""),
            (
                InstanceStatusInfo {
                    system: detail("failed", 880),
                    ..none()
                },
                "system_status now",
            ),
            (
                InstanceStatusInfo {
                    instance: detail("failed", 880),
                    ..none()
                },
                "instance_status now",
            ),
            (
                InstanceStatusInfo {
                    instance: detail("failed", 881),
                    ..none()
                },
                "",
            ),
            (
                InstanceStatusInfo {
                    instance: detail("passed", 0),
                    ..none()
                },
                "",
            ),
            (
                InstanceStatusInfo {
                    events: event(),
                    ..none()
                },
                "event_status",
            ),
            (
                InstanceStatusInfo {
                    events: event(),
                    system: detail("failed", 0),
                    ..none()
                },
                "system_status+event_status now",
            ),
            (
                InstanceStatusInfo {
                    events: vec![EventInfo {
                        code: "other".to_owned(),
                    }],
                    ..none()
                },
                "",
            ),
        ];
        for (status, expected) in table {
            assert_eq!(shown(status.clone()), expected, "{status:?}");
        }
        assert_eq!(queries().len(), 3);
    }
}
