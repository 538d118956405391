//! What a buffer is measured in: the shape of a pod, and how many of them its workload has.

use std::sync::Arc;

use api::{
    convert, joined,
    v1beta1::{CapacityBuffer, ScalableRef},
};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet, StatefulSet},
    core::v1::{PodSpec, PodTemplateSpec},
};
use model::pod::PodShape;
use state::{ObjectKey, View};

use crate::writer::{ApiError, Writer};

/// A buffer that can be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    pub shape: Arc<PodShape>,
    /// Replicas of the workload, for buffers that follow one.
    pub scale: Option<i32>,
    /// Generation of the pod template, for buffers that refer to one.
    pub template_generation: Option<i64>,
}

/// Why a buffer cannot be measured.
#[derive(Debug)]
pub enum Unresolved {
    /// May come by itself.
    Missing {
        reason: &'static str,
        message: String,
    },
    /// The user has to change something.
    Unsupported(String),
    Api(ApiError),
}

pub async fn resolve(writer: &Writer, view: &View, buffer: &CapacityBuffer) -> Result<Resolved, Unresolved> {
    let namespace = buffer.metadata.namespace.as_deref().unwrap_or_default();
    if let Some(reference) = &buffer.spec.pod_template_ref {
        let found = view.pod_templates.get(&ObjectKey::new(namespace, &reference.name));
        let template = found.ok_or_else(|| Unresolved::Missing {
            reason: "PodTemplateNotFound",
            message: format!("PodTemplate {:?} not found", reference.name),
        })?;
        return Ok(Resolved {
            shape: shape(namespace, template.template.as_ref())?,
            scale: None,
            template_generation: Some(template.metadata.generation.unwrap_or_default()),
        });
    }
    let Some(reference) = &buffer.spec.scalable_ref else {
        let message = "neither podTemplateRef nor scalableRef is set";
        return Err(Unresolved::Missing {
            reason: "ResolutionFailed",
            message: message.to_owned(),
        });
    };
    let (template, replicas) = workload(writer, namespace, reference).await?;
    Ok(Resolved {
        shape: shape(namespace, template.as_ref())?,
        scale: Some(replicas.unwrap_or(1)),
        template_generation: None,
    })
}

type Workload = (Option<PodTemplateSpec>, Option<i32>);

async fn workload(writer: &Writer, namespace: &str, reference: &ScalableRef) -> Result<Workload, Unresolved> {
    let group = reference.api_group.as_deref().filter(|group| !group.is_empty());
    let (kind, name) = (reference.kind.as_str(), reference.name.as_str());
    let group = group.unwrap_or("apps");
    let found: Option<Workload> = match (group, kind) {
        ("apps", "Deployment") => {
            let found: Option<Deployment> = writer.read(namespace, name).await.map_err(Unresolved::Api)?;
            found
                .map(|found| found.spec)
                .map(|spec| (Some(spec.template), spec.replicas))
        }
        ("apps", "StatefulSet") => {
            let found: Option<StatefulSet> = writer.read(namespace, name).await.map_err(Unresolved::Api)?;
            found
                .map(|found| found.spec)
                .map(|spec| (Some(spec.template), spec.replicas))
        }
        ("apps", "ReplicaSet") => {
            let found: Option<ReplicaSet> = writer.read(namespace, name).await.map_err(Unresolved::Api)?;
            found.map(|found| found.spec).map(|spec| (spec.template, spec.replicas))
        }
        _ => {
            let message =
                format!("{kind} of {group} cannot be followed: use Deployment, StatefulSet or ReplicaSet of apps");
            return Err(Unresolved::Unsupported(message));
        }
    };
    found.ok_or_else(|| Unresolved::Missing {
        reason: "ScalableRefNotFound",
        message: format!("{kind} {name:?} not found"),
    })
}

/// The pod that the template makes, without what only a real pod can have: claims on volumes.
fn shape(namespace: &str, template: Option<&PodTemplateSpec>) -> Result<Arc<PodShape>, Unresolved> {
    let labels = template
        .and_then(|template| template.metadata.as_ref())
        .and_then(|meta| meta.labels.as_ref());
    let mut spec: PodSpec = template.and_then(|template| template.spec.clone()).unwrap_or_default();
    if let Some(volumes) = &mut spec.volumes {
        volumes.retain(|volume| volume.persistent_volume_claim.is_none() && volume.ephemeral.is_none());
    }
    // Whatever needs the room comes first.
    spec.priority = Some(i32::MIN);
    let parsed = convert::pod_shape(namespace, labels, &spec, None);
    let shape = parsed
        .strict()
        .map_err(|fields| Unresolved::Unsupported(format!("the pod template cannot be read: {}", joined(&fields))))?;
    Ok(Arc::new(shape))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(spec: serde_json::Value) -> PodTemplateSpec {
        serde_json::from_value(json!({"metadata": {"labels": {"app": "web"}}, "spec": spec})).expect("a template")
    }

    /// LC-B12: volumes stripped, tolerations and affinity kept.
    #[test]
    fn a_virtual_pod_asks_for_all_but_volumes_of_its_own() {
        let template = template(json!({
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            "nodeSelector": {"disk": "fast"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
                "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}},
            }]}},
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
                {"name": "config", "configMap": {"name": "config"}},
            ],
            "priority": 1000,
        }));
        let shape = shape("default", Some(&template)).expect("it can be read");
        assert!(shape.volumes.is_empty());
        assert_eq!((shape.tolerations.len(), shape.node_selector.len()), (1, 1));
        assert_eq!(shape.affinity.required_anti.len(), 1);
        assert_eq!((shape.priority, shape.labels.len()), (i32::MIN, 1));
    }

    #[test]
    fn a_template_that_cannot_be_read_is_the_users_to_mend() {
        let template = template(json!({
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "lots"}}}],
        }));
        let refused = shape("default", Some(&template)).expect_err("cpu is not a quantity");
        assert!(matches!(refused, Unresolved::Unsupported(message) if message.contains("cpu")));
    }
}
