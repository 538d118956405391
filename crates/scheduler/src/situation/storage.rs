//! `class`, `volume` and `pvc` lines.

use std::sync::Arc;

use model::{
    PodKey, Requirement, Snapshot, StorageClass, Volume, VolumeClaim,
    volume::{BindingMode, driver_of_provisioner},
};

use super::{Line, now, requirement};

pub(super) fn read(line: &Line<'_>, snapshot: &mut Snapshot) {
    let name: Arc<str> = line.name.into();
    match line.kind {
        "class" => {
            let class = StorageClass {
                name: name.clone(),
                driver: driver_of_provisioner(line.get("driver").unwrap_or("csi")).into(),
                binding: if line.has("immediate") {
                    BindingMode::Immediate
                } else {
                    BindingMode::WaitForFirstConsumer
                },
                allowed_topologies: terms(line),
                is_default: line.has("default"),
                created: now(),
            };
            snapshot.storage_classes.insert(name, Arc::new(class));
        }
        "volume" => {
            let volume = Volume {
                name: name.clone(),
                deleting: line.has("gone"),
                driver: line.get("driver").map(Into::into),
                machine_bound: line.has("local"),
                node_terms: terms(line),
            };
            snapshot.volumes.insert(name, Arc::new(volume));
        }
        "pvc" => {
            let claim = VolumeClaim {
                key: PodKey::new(line.get("in").unwrap_or("default"), line.name),
                volume: line.get("volume").map(Into::into),
                storage_class: line.get("class").map(Into::into),
                bind_completed: !line.has("unconfirmed"),
                deleting: line.has("gone"),
                lost: line.has("lost"),
            };
            snapshot.volume_claims.insert(claim.key.clone(), Arc::new(claim));
        }
        _ => {}
    }
}

/// Alternatives, each with all of its expressions.
fn terms(line: &Line<'_>) -> Vec<Vec<Requirement>> {
    line.all("at")
        .map(|term| term.split('&').map(requirement).collect())
        .collect()
}
