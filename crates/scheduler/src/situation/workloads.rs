//! Services and the owners of pods.

use std::sync::Arc;

use model::{
    PodKey, Snapshot,
    pod::LabelSelector,
    workload::{Controlled, ControllerKey, ControllerKind, Service},
};

use super::{Line, requirement};

/// `service NAME label:app=web`, with `unselective` for one that has no selector at all; `owner KIND/NAME label:app=web
/// where=tier:Exists`.
pub(super) fn read(line: &Line<'_>, snapshot: &mut Snapshot) {
    let namespace = line.get("in").unwrap_or("default");
    match line.kind {
        "service" => {
            let service = Service {
                key: PodKey::new(namespace, line.name),
                selector: (!line.has("unselective")).then(|| line.labels()),
            };
            snapshot.services.insert(service.key.clone(), Arc::new(service));
        }
        "owner" => {
            let controller = controller(namespace, line.name);
            let selected = if controller.kind == ControllerKind::ReplicationController {
                Controlled::Labels(line.labels())
            } else {
                let mut requirements: Vec<_> = model::Requirements::from_labels(&line.labels())
                    .iter()
                    .cloned()
                    .collect();
                requirements.extend(line.all("where").map(requirement));
                Controlled::Selector(Some(LabelSelector { requirements }))
            };
            snapshot.controllers.insert(controller, Arc::new(selected));
        }
        _ => {}
    }
}

/// `KIND/NAME`
pub(super) fn controller(namespace: &str, text: &str) -> ControllerKey {
    let (kind, name) = text.split_once('/').unwrap_or_else(|| panic!("{text} has no kind"));
    let kind = match kind {
        "ReplicationController" => ControllerKind::ReplicationController,
        "ReplicaSet" => ControllerKind::ReplicaSet,
        "StatefulSet" => ControllerKind::StatefulSet,
        other => panic!("{other} has no selector"),
    };
    ControllerKey {
        kind,
        key: PodKey::new(namespace, name),
    }
}
