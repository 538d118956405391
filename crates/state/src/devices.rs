//! Devices that pods claim, which are only watched where dynamic resource allocation is on.

use std::sync::Arc;

use api::convert::{self, Parsed};
use imbl::OrdMap;
use k8s_openapi::api::resource::v1 as resource;
use model::dra::{DeviceClass, ResourceClaim, ResourceSlice};

use crate::{Change, Event, Indexed, Kind, Table, index::Core};

/// What is kept of each kind.
#[derive(Debug, Default)]
pub(crate) struct DeviceTables {
    claims: Table<ResourceClaim>,
    slices: Table<ResourceSlice>,
    classes: Table<DeviceClass>,
}

fn put<K: Ord + Clone, T>(map: &mut OrdMap<K, Arc<T>>, key: &K, change: &Change<T>) {
    match &change.new {
        Some(value) => map.insert(key.clone(), value.clone()),
        None => map.remove(key),
    };
}

impl Indexed for resource::ResourceClaim {
    const KIND: Kind = Kind::ResourceClaim;
    type Kept = ResourceClaim;

    fn keep(self, _: &mut Core) -> Option<Parsed<ResourceClaim>> {
        Some(convert::resource_claim(&self))
    }

    fn table(core: &mut Core) -> &mut Table<ResourceClaim> {
        &mut core.devices.claims
    }

    fn settle(core: &mut Core, change: &Change<ResourceClaim>) {
        put(&mut core.view_mut().snapshot.resource_claims, &change.key, change);
    }

    fn event(_: Change<ResourceClaim>) -> Option<Event> {
        None
    }
}

impl Indexed for resource::ResourceSlice {
    const KIND: Kind = Kind::ResourceSlice;
    type Kept = ResourceSlice;

    fn keep(self, _: &mut Core) -> Option<Parsed<ResourceSlice>> {
        Some(convert::resource_slice(&self))
    }

    fn table(core: &mut Core) -> &mut Table<ResourceSlice> {
        &mut core.devices.slices
    }

    fn settle(core: &mut Core, change: &Change<ResourceSlice>) {
        put(&mut core.view_mut().snapshot.resource_slices, &change.key.name, change);
    }

    fn event(change: Change<ResourceSlice>) -> Option<Event> {
        Some(Event::Slice(change))
    }
}

impl Indexed for resource::DeviceClass {
    const KIND: Kind = Kind::DeviceClass;
    type Kept = DeviceClass;

    fn keep(self, _: &mut Core) -> Option<Parsed<DeviceClass>> {
        Some(convert::device_class(&self).into())
    }

    fn table(core: &mut Core) -> &mut Table<DeviceClass> {
        &mut core.devices.classes
    }

    fn settle(core: &mut Core, change: &Change<DeviceClass>) {
        put(&mut core.view_mut().snapshot.device_classes, &change.key.name, change);
    }

    fn event(_: Change<DeviceClass>) -> Option<Event> {
        None
    }
}
