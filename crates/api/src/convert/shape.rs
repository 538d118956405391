//! What pods of one template have in common.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{PodSpec, PodStatus};
use model::Requirement;
use model::pod::{HostPort, PodShape, PodVolume};

use super::affinity::{affinity, spreads, tolerations};
use super::requests::requests;
use super::{Parsed, fields, pod_claims};
use crate::field_error::FieldError;

/// What a pod gets to end when it does not say.
const DEFAULT_GRACE_SECS: i64 = 30;

const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// The shape of a pod, or of the pods of a template, which have no status yet.
pub fn pod_shape(
    namespace: &str,
    labels: Option<&BTreeMap<String, String>>,
    spec: &PodSpec,
    status: Option<&PodStatus>,
) -> Parsed<PodShape> {
    let mut errors = Vec::new();
    let node_selector = spec.node_selector.iter().flatten();
    let grace = spec.termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE_SECS);
    let value = PodShape {
        labels: fields::labels(labels),
        requests: requests(spec, status, &mut errors),
        node_selector: node_selector
            .map(|(key, value)| Requirement::one_of(key, [value.as_str()]))
            .collect(),
        affinity: affinity(namespace, spec.affinity.as_ref(), &mut errors),
        spreads: spreads(spec.topology_spread_constraints.as_ref(), &mut errors),
        tolerations: tolerations(spec.tolerations.as_ref(), &mut errors),
        host_ports: host_ports(spec, &mut errors),
        volumes: volumes(spec),
        priority: spec.priority.unwrap_or_default(),
        priority_class: fields::non_empty(spec.priority_class_name.as_ref()).map(Into::into),
        scheduler_name: fields::non_empty(spec.scheduler_name.as_ref())
            .unwrap_or(DEFAULT_SCHEDULER)
            .into(),
        resource_claims: pod_claims::pod_claims(spec),
        containers_claim: pod_claims::containers_claim(spec),
        termination_grace: SignedDuration::from_secs(grace),
    };
    Parsed { value, errors }
}

/// Ports of regular containers only, as upstream counts them.
fn host_ports(spec: &PodSpec, errors: &mut Vec<FieldError>) -> Vec<HostPort> {
    let mut ports = Vec::new();
    for (index, container) in spec.containers.iter().enumerate() {
        for (place, port) in container.ports.iter().flatten().enumerate() {
            let number = match port.host_port {
                None | Some(0) => continue,
                Some(number) => number,
            };
            let Ok(number) = u16::try_from(number) else {
                let path = format!("spec.containers[{index}].ports[{place}].hostPort");
                errors.push(FieldError::new(path, format_args!("{number} is not a port")));
                continue;
            };
            ports.push(HostPort {
                ip: fields::non_empty(port.host_ip.as_ref()).unwrap_or("0.0.0.0").to_owned(),
                port: number,
                protocol: fields::non_empty(port.protocol.as_ref()).unwrap_or("TCP").to_owned(),
            });
        }
    }
    ports
}

fn volumes(spec: &PodSpec) -> Vec<PodVolume> {
    let volumes = spec.volumes.iter().flatten();
    volumes
        .filter_map(|volume| {
            if let Some(claim) = &volume.persistent_volume_claim {
                return Some(PodVolume::Claim(claim.claim_name.clone()));
            }
            let ephemeral = volume.ephemeral.as_ref()?;
            let template = ephemeral.volume_claim_template.as_ref();
            Some(PodVolume::Ephemeral {
                volume: volume.name.clone(),
                storage_class: template.and_then(|template| template.spec.storage_class_name.clone()),
            })
        })
        .collect()
}
