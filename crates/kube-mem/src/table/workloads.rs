//! Workloads and what guards them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::show::{
    age, containers, duration, flag, has_condition, int, is_deleting, labels, list, name, selector, selector_or_none,
    since, text, text_or,
};

pub(super) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let [names, images] = containers(&spec["template"]);
    vec![
        name(object),
        format!("{}/{}", int(&status["readyReplicas"]), int(&spec["replicas"])).into(),
        int(&status["updatedReplicas"]).into(),
        int(&status["availableReplicas"]).into(),
        age(object, now),
        names,
        images,
        selector(&spec["selector"]).into(),
    ]
}

pub(super) fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    replicas(object, now, selector_or_none(&object["spec"]["selector"]))
}

pub(super) fn replication_controller(object: &Value, now: Timestamp) -> Vec<Value> {
    replicas(object, now, labels(&object["spec"]["selector"]))
}

fn replicas(object: &Value, now: Timestamp, selector: String) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let [names, images] = containers(&spec["template"]);
    vec![
        name(object),
        int(&spec["replicas"]).into(),
        int(&status["replicas"]).into(),
        int(&status["readyReplicas"]).into(),
        age(object, now),
        names,
        images,
        selector.into(),
    ]
}

pub(super) fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let ready = format!("{}/{}", int(&status["readyReplicas"]), int(&spec["replicas"]));
    let [names, images] = containers(&spec["template"]);
    vec![name(object), ready.into(), age(object, now), names, images]
}

pub(super) fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let [names, images] = containers(&spec["template"]);
    vec![
        name(object),
        int(&status["desiredNumberScheduled"]).into(),
        int(&status["currentNumberScheduled"]).into(),
        int(&status["numberReady"]).into(),
        int(&status["updatedNumberScheduled"]).into(),
        int(&status["numberAvailable"]).into(),
        labels(&spec["template"]["spec"]["nodeSelector"]).into(),
        age(object, now),
        names,
        images,
        selector_or_none(&spec["selector"]).into(),
    ]
}

pub(super) fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let succeeded = int(&status["succeeded"]);
    let completions = match (spec["completions"].as_i64(), int(&spec["parallelism"])) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallel) if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
        (None, _) => format!("{succeeded}/1"),
    };
    let [names, images] = containers(&spec["template"]);
    vec![
        name(object),
        job_state(object).into(),
        completions.into(),
        job_duration(status, now).into(),
        age(object, now),
        names,
        images,
        selector_or_none(&spec["selector"]).into(),
    ]
}

fn job_state(job: &Value) -> &'static str {
    let is = |kind: &str| has_condition(job, kind);
    match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if is_deleting(job) => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn job_duration(status: &Value, now: Timestamp) -> String {
    let time = |field: &str| text(&status[field]).parse::<Timestamp>().ok();
    match (time("startTime"), time("completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => duration(end.unwrap_or(now).as_second() - start.as_second()),
    }
}

pub(super) fn cron_job(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let last = &status["lastScheduleTime"];
    let last = if last.is_string() {
        since(last, now)
    } else {
        "<none>".into()
    };
    let template = &spec["jobTemplate"]["spec"];
    let [names, images] = containers(&template["template"]);
    vec![
        name(object),
        spec["schedule"].clone(),
        text_or(&spec["timeZone"], "<none>").into(),
        if flag(&spec["suspend"]) { "True" } else { "False" }.into(),
        list(&status["active"]).len().into(),
        last.into(),
        age(object, now),
        names,
        images,
        selector_or_none(&template["selector"]).into(),
    ]
}

pub(super) fn pod_disruption_budget(object: &Value, now: Timestamp) -> Vec<Value> {
    let amount = |value: &Value| -> Value {
        match value {
            Value::Null => "N/A".into(),
            Value::String(_) => value.clone(),
            number => number.to_string().into(),
        }
    };
    let spec = &object["spec"];
    vec![
        name(object),
        amount(&spec["minAvailable"]),
        amount(&spec["maxUnavailable"]),
        int(&object["status"]["disruptionsAllowed"]).into(),
        age(object, now),
    ]
}

pub(super) fn pod_template(object: &Value, _: Timestamp) -> Vec<Value> {
    let template = &object["template"];
    let [names, images] = containers(template);
    vec![
        name(object),
        names,
        images,
        labels(&template["metadata"]["labels"]).into(),
    ]
}

pub(super) fn controller_revision(object: &Value, now: Timestamp) -> Vec<Value> {
    let owners = list(&object["metadata"]["ownerReferences"]);
    let controller = owners.iter().find(|owner| flag(&owner["controller"])).map(|owner| {
        let group = text(&owner["apiVersion"])
            .rsplit_once('/')
            .map_or("", |(group, _)| group);
        let kind = text(&owner["kind"]).to_lowercase();
        let kind = if group.is_empty() {
            kind
        } else {
            format!("{kind}.{group}")
        };
        format!("{kind}/{}", text(&owner["name"]))
    });
    vec![
        name(object),
        controller.unwrap_or_else(|| "<none>".into()).into(),
        json!(int(&object["revision"])),
        age(object, now),
    ]
}
