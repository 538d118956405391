//! Evictions: a delete that asks the pod's disruption budget first.
//!
//! The budget's status is written by a controller outside of this server; here it is only read and counted down, as in
//! the real server.

use std::sync::Arc;

use serde_json::{Value, json};

use super::decode::{self, WriteOptions};
use super::delete::preconditions;
use super::{DeleteOptions, Reply, pods};
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::meta;
use crate::registry::GroupResource;
use crate::request::Request;
use crate::selector::LabelSelector;
use crate::store::{Object, ObjectRef, key};

const BUDGETS: &str = "poddisruptionbudgets.policy";
const REFUSAL: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// More evictions than this without the budget's controller taking note are too many.
const MAX_DISRUPTED_PODS: usize = 2000;

impl Cluster {
    pub(super) fn evict(&mut self, request: &Request) -> Result<Reply, Failure> {
        let eviction = decode::body(request)?;
        let said = meta::name(&eviction);
        if said != request.name {
            return Err(Failure::bad_request(
                "name in URL does not match name in Eviction object",
            ));
        }
        let mut options = DeleteOptions::parse(&eviction["deleteOptions"])?;
        options.dry_run |= WriteOptions::of(request, "CreateOptions")?.dry_run;
        let pod = self.existing(request)?.clone();
        if !needs_budget(&pod.value) {
            return self.evicted(request, &pod, &options);
        }
        match self.budgets_of(request, &pod.value).as_slice() {
            [] => {}
            [budget] => self.charge(request, &pod, budget, options.dry_run)?,
            _ => return Err(Failure::bare(SEVERAL)),
        }
        self.evicted(request, &pod, &options)
    }

    fn budgets_of(&self, request: &Request, pod: &Value) -> Vec<Arc<Object>> {
        let Some(budgets) = self.store.collection(BUDGETS) else {
            return Vec::new();
        };
        budgets
            .range(&request.namespace, None)
            .map(|(_, budget)| budget)
            .filter(|budget| {
                LabelSelector::from_object(&budget.value["spec"]["selector"]).matches(&pod["metadata"]["labels"])
            })
            .cloned()
            .collect()
    }

    /// Takes one disruption from the budget, unless the pod is unhealthy and may go for free.
    fn charge(&mut self, request: &Request, pod: &Object, budget: &Arc<Object>, dry_run: bool) -> Result<(), Failure> {
        let (spec, status) = (&budget.value["spec"], &budget.value["status"]);
        let number = |field: &str| status[field].as_i64().unwrap_or(0);
        if !is_ready(&pod.value) {
            let always = spec["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
            let healthy = number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0;
            if always || healthy {
                return Ok(());
            }
        }
        check(&budget.value)?;
        if dry_run {
            return Ok(());
        }
        let mut new = budget.value.clone();
        let left = number("disruptionsAllowed") - 1;
        let status = meta::map_mut(&mut new, "status");
        status.insert("disruptionsAllowed".to_owned(), left.into());
        let disrupted = status.entry("disruptedPods").or_insert_with(|| json!({}));
        disrupted[request.name.as_str()] = self.stamp().into();
        if left == 0 {
            no_disruption_left(&mut new, &self.stamp());
        }
        let at = ObjectRef {
            collection: BUDGETS.into(),
            key: key(&request.namespace, meta::name(&budget.value)),
        };
        self.commit(&at, new);
        Ok(())
    }

    /// Marks the pod as a target of disruption and deletes it.
    fn evicted(&mut self, request: &Request, pod: &Arc<Object>, options: &DeleteOptions) -> Result<Reply, Failure> {
        preconditions(&request.ty, &pod.value, options)?;
        let at = ObjectRef {
            collection: request.ty.collection.clone(),
            key: key(&request.namespace, &request.name),
        };
        let mut options = options.clone();
        if !options.dry_run {
            let mut marked = pod.value.clone();
            pods::set_condition(
                &mut marked,
                &json!({
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "EvictionByEvictionAPI",
                    "message": "Eviction API: evicting",
                }),
                &self.stamp(),
            );
            let marked = self.store_update(&at, pod, marked, false);
            if options.resource_version.is_some() {
                options.resource_version = Some(marked.revision.to_string());
            }
        }
        if self.store.get_ref(&at).is_some() {
            self.delete_at(&at, &options)?;
        }
        Ok(Reply::value(
            201,
            &json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 }),
        ))
    }
}

/// Pods that are done, have not started or are going already disrupt nobody.
fn needs_budget(pod: &Value) -> bool {
    let idle = matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed" | "Pending")
    );
    !idle && !meta::is_deleting(pod)
}

fn is_ready(pod: &Value) -> bool {
    meta::list(&pod["status"]["conditions"])
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// *Errors*: 429 with the budget's reason; 403 for a status that makes no sense.
fn check(budget: &Value) -> Result<(), Failure> {
    let (name, status) = (meta::name(budget), &budget["status"]);
    let number = |field: &str| status[field].as_i64().unwrap_or(0);
    let resource = GroupResource {
        group: "policy".to_owned(),
        plural: "poddisruptionbudget".to_owned(),
    };
    if number("observedGeneration") < meta::generation(budget) {
        let cause = format!("The disruption budget {name} is still being processed by the server.");
        return Err(too_many(&cause, 10));
    }
    if number("disruptionsAllowed") < 0 {
        return Err(Failure::forbidden(
            &resource,
            name,
            "pdb disruptions allowed is negative",
        ));
    }
    if status["disruptedPods"]
        .as_object()
        .is_some_and(|pods| pods.len() > MAX_DISRUPTED_PODS)
    {
        let cause = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Failure::forbidden(&resource, name, cause));
    }
    if number("disruptionsAllowed") > 0 {
        return Ok(());
    }
    let (needed, healthy) = (number("desiredHealthy"), number("currentHealthy"));
    let condition = meta::list(&status["conditions"]).iter().find(|condition| {
        condition["type"] == "DisruptionAllowed"
            && condition["status"] == "False"
            && condition["message"].as_str().is_some_and(|message| !message.is_empty())
    });
    let told = condition.map(|condition| {
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        (text("reason"), text("message"))
    });
    let cause = match told {
        Some(("SyncFailed", message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        ),
        _ if healthy <= needed => {
            format!("The disruption budget {name} needs {needed} healthy pods and has {healthy} currently")
        }
        Some((reason, message)) => {
            format!("The disruption budget {name} does not allow evicting pods currently ({reason}): {message}")
        }
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    };
    Err(too_many(&cause, 0))
}

fn too_many(cause: &str, retry_after_secs: u64) -> Failure {
    let mut failure = Failure::new(429, "TooManyRequests", REFUSAL);
    let mut details = json!({ "causes": [{ "reason": "DisruptionBudget", "message": cause }] });
    if retry_after_secs > 0 {
        details["retryAfterSeconds"] = retry_after_secs.into();
    }
    failure.details = Some(details);
    failure
}

const SEVERAL: &str =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";

fn no_disruption_left(budget: &mut Value, now: &str) {
    let generation = meta::generation(budget);
    pods::set_condition(
        budget,
        &json!({
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "observedGeneration": generation,
        }),
        now,
    );
}
