//! A pod in one line: how many containers are ready, and the one word that tells how it is.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::show::{age, flag, has_condition, int, is_deleting, list, name, since, text, text_or};

pub(super) fn pod(pod: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let summary = Summary::of(pod);
    let restarts = match (summary.restarts, &summary.last_restart) {
        (0, _) | (_, None) => summary.restarts.to_string(),
        (count, Some(time)) => format!("{count} ({} ago)", since(&json!(time), now)),
    };
    vec![
        name(pod),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.into(),
        restarts.into(),
        age(pod, now),
        text_or(&status["podIPs"][0]["ip"], "<none>").into(),
        text_or(&spec["nodeName"], "<none>").into(),
        text_or(&status["nominatedNodeName"], "<none>").into(),
        readiness_gates(pod).into(),
    ]
}

pub(super) fn conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match text(&pod["status"]["phase"]) {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(&pod["spec"]["readinessGates"]);
    if gates.is_empty() {
        return "<none>".into();
    }
    let open = gates
        .iter()
        .filter(|gate| has_condition(pod, text(&gate["conditionType"])))
        .count();
    format!("{open}/{}", gates.len())
}

struct Summary {
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<String>,
    reason: String,
}

impl Summary {
    fn of(pod: &Value) -> Summary {
        let (spec, status) = (&pod["spec"], &pod["status"]);
        let sidecars = list(&spec["initContainers"])
            .iter()
            .filter(|container| is_sidecar(container))
            .count();
        let gated = list(&status["conditions"])
            .iter()
            .any(|condition| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated");
        let reason = match text(&status["reason"]) {
            _ if gated => "SchedulingGated",
            "" => text(&status["phase"]),
            reason => reason,
        };
        let mut summary = Summary {
            ready: 0,
            total: list(&spec["containers"]).len() + sidecars,
            restarts: 0,
            last_restart: None,
            reason: reason.to_owned(),
        };
        let sidecar_restarts = summary.read_init_containers(pod);
        if sidecar_restarts.is_some() || has_condition(pod, "Initialized") {
            (summary.restarts, summary.last_restart) = sidecar_restarts.unwrap_or_default();
            summary.read_containers(pod);
        }
        if is_deleting(pod) && text(&status["reason"]) == "NodeLost" {
            summary.reason = "Unknown".into();
        } else if is_deleting(pod) && !["Succeeded", "Failed"].contains(&text(&status["phase"])) {
            summary.reason = "Terminating".into();
        }
        summary
    }

    fn count_restarts(&mut self, container: &Value) {
        self.restarts += int(&container["restartCount"]);
        let finished = text(&container["lastState"]["terminated"]["finishedAt"]);
        if !finished.is_empty() && self.last_restart.as_deref().is_none_or(|last| last < finished) {
            self.last_restart = Some(finished.to_owned());
        }
    }

    /// Restarts of the sidecars alone, or nothing while the pod is still initialising.
    fn read_init_containers(&mut self, pod: &Value) -> Option<(i64, Option<String>)> {
        let declared = list(&pod["spec"]["initContainers"]);
        let mut sidecars = Summary {
            ready: 0,
            total: 0,
            restarts: 0,
            last_restart: None,
            reason: String::new(),
        };
        for (at, container) in list(&pod["status"]["initContainerStatuses"]).iter().enumerate() {
            self.count_restarts(container);
            let is_sidecar = declared
                .iter()
                .any(|other| other["name"] == container["name"] && is_sidecar(other));
            if is_sidecar {
                sidecars.count_restarts(container);
            }
            let (terminated, waiting) = (&container["state"]["terminated"], &container["state"]["waiting"]);
            if terminated.is_object() && int(&terminated["exitCode"]) == 0 {
                continue;
            }
            if is_sidecar && flag(&container["started"]) {
                self.ready += usize::from(flag(&container["ready"]));
                continue;
            }
            let waits_for = text(&waiting["reason"]);
            self.reason = if terminated.is_object() {
                format!("Init:{}", ending(terminated))
            } else if !waits_for.is_empty() && waits_for != "PodInitializing" {
                format!("Init:{waits_for}")
            } else {
                format!("Init:{at}/{}", declared.len())
            };
            return None;
        }
        Some((sidecars.restarts, sidecars.last_restart))
    }

    fn read_containers(&mut self, pod: &Value) {
        let mut is_running = false;
        let mut failure = None;
        // The first container has the last word.
        for container in list(&pod["status"]["containerStatuses"]).iter().rev() {
            self.count_restarts(container);
            let state = &container["state"];
            if !text(&state["waiting"]["reason"]).is_empty() {
                self.reason = text(&state["waiting"]["reason"]).to_owned();
            } else if state["terminated"].is_object() {
                self.reason = ending(&state["terminated"]);
                if int(&state["terminated"]["exitCode"]) != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if flag(&container["ready"]) && state["running"].is_object() {
                is_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if is_running && has_condition(pod, "Ready") {
                self.reason = "Running".into();
            } else if let Some(failure) = failure {
                self.reason = failure;
            } else if is_running {
                self.reason = "NotReady".into();
            }
        }
    }
}

fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

/// How a container ended: its reason, its signal or its exit code.
fn ending(terminated: &Value) -> String {
    match (text(&terminated["reason"]), int(&terminated["signal"])) {
        ("", 0) => format!("ExitCode:{}", int(&terminated["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
