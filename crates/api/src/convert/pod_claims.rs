//! The resource claims of a pod.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec, PodStatus};
use model::pod::{PodClaim, PodClaimSource};

/// The claims that a pod names. One that names neither a claim nor a template counts as a template's: it waits for a
/// claim that nobody makes.
pub fn pod_claims(spec: &PodSpec) -> Vec<PodClaim> {
    let claims = spec.resource_claims.iter().flatten();
    claims
        .map(|claim| PodClaim {
            name: claim.name.clone(),
            source: match &claim.resource_claim_name {
                Some(name) => PodClaimSource::Claim(name.clone()),
                None => PodClaimSource::Template,
            },
        })
        .collect()
}

/// Whether a container uses a claim, be it one that the pod names or not.
pub fn containers_claim(spec: &PodSpec) -> bool {
    let claims = |container: &Container| {
        let resources = container.resources.as_ref();
        resources
            .and_then(|resources| resources.claims.as_ref())
            .is_some_and(|claims| !claims.is_empty())
    };
    let init = spec.init_containers.iter().flatten();
    init.chain(&spec.containers).any(claims)
}

/// The names of the claims that were made for a pod.
pub fn generated_claims(status: Option<&PodStatus>) -> BTreeMap<String, Option<String>> {
    let made = status.and_then(|status| status.resource_claim_statuses.as_ref());
    made.into_iter()
        .flatten()
        .map(|made| (made.name.clone(), made.resource_claim_name.clone()))
        .collect()
}
