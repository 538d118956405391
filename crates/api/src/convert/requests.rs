//! What a pod asks for, by the rules of the scheduler.

use k8s_openapi::api::core::v1::{Container, ContainerStatus, PodSpec, PodStatus, ResourceRequirements};
use model::{Quantity, ResourceName, Resources};

use super::fields::resources;
use crate::field_error::FieldError;

/// The sum over containers, or the largest moment of initialisation if that is more; pod-level requests override it,
/// overhead is added, and one `pods`.
///
/// While a pod is resized in place it weighs the larger of what it asks for and what it still holds, so the status
/// counts where there is one.
pub fn requests(spec: &PodSpec, status: Option<&PodStatus>, errors: &mut Vec<FieldError>) -> Resources {
    let statuses = |of: fn(&PodStatus) -> &Option<Vec<ContainerStatus>>| {
        status.and_then(|status| of(status).as_deref()).unwrap_or_default()
    };
    let of_apps = statuses(|status| &status.container_statuses);
    let of_inits = statuses(|status| &status.init_container_statuses);

    let mut total = Resources::new();
    for (index, container) in spec.containers.iter().enumerate() {
        total.add_assign(&container_requests(
            &format!("spec.containers[{index}]"),
            container,
            of_apps,
            errors,
        ));
    }
    let mut sidecars = Resources::new();
    let mut initialising = Resources::new();
    for (index, container) in spec.init_containers.iter().flatten().enumerate() {
        let path = format!("spec.initContainers[{index}]");
        let asked = container_requests(&path, container, of_inits, errors);
        // A sidecar keeps running: it weighs on everything after it, and on the pod as a whole.
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add_assign(&asked);
            initialising.max_with(&sidecars);
        } else {
            initialising.max_with(&asked.plus(&sidecars));
        }
    }
    total.add_assign(&sidecars);
    total.max_with(&initialising);
    override_with_pod_level(&mut total, spec.resources.as_ref(), errors);
    total.add_assign(&resources("spec.overhead", spec.overhead.as_ref(), errors));
    total.set(ResourceName::PODS, Quantity::from_int(1));
    total
}

/// The most that a pod may use, where its containers say so: for those who watch, no decision is made on it. What cannot
/// be read counts as nothing.
pub fn pod_limits(spec: &PodSpec) -> Resources {
    let limits = |container: &Container| {
        let limits = container.resources.as_ref().and_then(|all| all.limits.as_ref());
        resources("limits", limits, &mut Vec::new())
    };
    let mut total = Resources::new();
    for container in &spec.containers {
        total.add_assign(&limits(container));
    }
    let mut sidecars = Resources::new();
    let mut initialising = Resources::new();
    for container in spec.init_containers.iter().flatten() {
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add_assign(&limits(container));
            initialising.max_with(&sidecars);
        } else {
            initialising.max_with(&limits(container).plus(&sidecars));
        }
    }
    total.add_assign(&sidecars);
    total.max_with(&initialising);
    total
}

fn container_requests(
    path: &str,
    container: &Container,
    statuses: &[ContainerStatus],
    errors: &mut Vec<FieldError>,
) -> Resources {
    let asked = container
        .resources
        .as_ref()
        .and_then(|resources| resources.requests.as_ref());
    let mut requests = resources(&format!("{path}.resources.requests"), asked, errors);
    let Some(status) = statuses.iter().find(|status| status.name == container.name) else {
        return requests;
    };
    let reported = status
        .resources
        .as_ref()
        .and_then(|resources| resources.requests.as_ref());
    for held in [status.allocated_resources.as_ref(), reported] {
        requests.max_with(&resources(&format!("{path} (status)"), held, errors));
    }
    requests
}

/// Only cpu, memory and huge pages can be asked for at the level of the pod. A limit without a request counts as one.
fn override_with_pod_level(
    total: &mut Resources,
    pod_level: Option<&ResourceRequirements>,
    errors: &mut Vec<FieldError>,
) {
    let Some(pod_level) = pod_level else { return };
    let supported = |name: &str| name == "cpu" || name == "memory" || name.starts_with("hugepages-");
    let mut asked = resources("spec.resources.limits", pod_level.limits.as_ref(), errors);
    for (name, amount) in resources("spec.resources.requests", pod_level.requests.as_ref(), errors).iter() {
        asked.set(name.clone(), amount);
    }
    for (name, amount) in asked.iter().filter(|(name, _)| supported(name.as_str())) {
        total.set(name.clone(), amount);
    }
}
