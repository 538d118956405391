//! Storage kinds. Only decisions look at them, so nothing is kept but what decisions see.

use std::sync::Arc;

use api::convert::{self, Parsed};
use imbl::OrdMap;
use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::{CSINode, StorageClass},
};
use model::{Volume, VolumeClaim, snapshot::AttachLimits};

use crate::{Change, Event, Indexed, Kind, Table, index::Core};

/// The same entry in the snapshot as in the table.
fn follow<K: Ord + Clone, V>(map: &mut OrdMap<K, Arc<V>>, key: K, new: Option<&Arc<V>>) {
    match new {
        Some(value) => map.insert(key, value.clone()),
        None => map.remove(&key),
    };
}

impl Indexed for PersistentVolumeClaim {
    const KIND: Kind = Kind::VolumeClaim;
    type Kept = VolumeClaim;

    fn keep(self, _: &mut Core) -> Option<Parsed<VolumeClaim>> {
        Some(convert::volume_claim(&self).into())
    }

    fn table(core: &mut Core) -> &mut Table<VolumeClaim> {
        &mut core.volume_claims
    }

    fn settle(core: &mut Core, change: &Change<VolumeClaim>) {
        let claims = &mut core.view_mut().snapshot.volume_claims;
        follow(claims, change.key.clone(), change.new.as_ref());
    }

    fn event(_: Change<VolumeClaim>) -> Option<Event> {
        None
    }
}

impl Indexed for PersistentVolume {
    const KIND: Kind = Kind::Volume;
    type Kept = Volume;

    fn keep(self, _: &mut Core) -> Option<Parsed<Volume>> {
        Some(convert::volume(&self))
    }

    fn table(core: &mut Core) -> &mut Table<Volume> {
        &mut core.volumes
    }

    fn settle(core: &mut Core, change: &Change<Volume>) {
        let volumes = &mut core.view_mut().snapshot.volumes;
        follow(volumes, change.key.name.clone(), change.new.as_ref());
    }

    fn event(_: Change<Volume>) -> Option<Event> {
        None
    }
}

impl Indexed for StorageClass {
    const KIND: Kind = Kind::StorageClass;
    type Kept = model::StorageClass;

    fn keep(self, _: &mut Core) -> Option<Parsed<model::StorageClass>> {
        Some(convert::storage_class(&self))
    }

    fn table(core: &mut Core) -> &mut Table<model::StorageClass> {
        &mut core.storage_classes
    }

    fn settle(core: &mut Core, change: &Change<model::StorageClass>) {
        let classes = &mut core.view_mut().snapshot.storage_classes;
        follow(classes, change.key.name.clone(), change.new.as_ref());
    }

    fn event(_: Change<model::StorageClass>) -> Option<Event> {
        None
    }
}

/// Bears the name of its node.
impl Indexed for CSINode {
    const KIND: Kind = Kind::AttachLimits;
    type Kept = AttachLimits;

    fn keep(self, _: &mut Core) -> Option<Parsed<AttachLimits>> {
        Some(convert::attach_limits(&self).into())
    }

    fn table(core: &mut Core) -> &mut Table<AttachLimits> {
        &mut core.attach_limits
    }

    fn settle(core: &mut Core, change: &Change<AttachLimits>) {
        let limits = &mut core.view_mut().snapshot.attach_limits;
        let node = (&*change.key.name).into();
        match &change.new {
            // A node without limits need not be listed.
            Some(new) if !new.is_empty() => limits.insert(node, (**new).clone()),
            _ => limits.remove(&node),
        };
    }

    fn event(_: Change<AttachLimits>) -> Option<Event> {
        None
    }
}
