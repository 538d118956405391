//! Services and controllers, which are only watched where the operator has default spreads.

use std::sync::Arc;

use api::convert::{self, Parsed};
use k8s_openapi::api::{
    apps::v1::{ReplicaSet, StatefulSet},
    core::v1::{ReplicationController, Service},
};
use model::workload::{Controlled, ControllerKey, ControllerKind};

use crate::{Change, Event, Indexed, Kind, Table, index::Core};

/// What is kept of each kind.
#[derive(Debug, Default)]
pub(crate) struct WorkloadTables {
    services: Table<model::workload::Service>,
    replica_sets: Table<Controlled>,
    stateful_sets: Table<Controlled>,
    replication_controllers: Table<Controlled>,
}

impl Indexed for Service {
    const KIND: Kind = Kind::Service;
    type Kept = model::workload::Service;

    fn keep(self, _: &mut Core) -> Option<Parsed<Self::Kept>> {
        Some(convert::service(&self).into())
    }

    fn table(core: &mut Core) -> &mut Table<Self::Kept> {
        &mut core.workloads.services
    }

    fn settle(core: &mut Core, change: &Change<Self::Kept>) {
        let services = &mut core.view_mut().snapshot.services;
        match &change.new {
            Some(service) => services.insert(change.key.clone(), service.clone()),
            None => services.remove(&change.key),
        };
    }

    fn event(_: Change<Self::Kept>) -> Option<Event> {
        None
    }
}

/// Kinds of controllers differ in nothing but their name.
fn settle(core: &mut Core, kind: ControllerKind, change: &Change<Controlled>) {
    let key = ControllerKey {
        kind,
        key: change.key.clone(),
    };
    let controllers = &mut core.view_mut().snapshot.controllers;
    match &change.new {
        Some(controlled) => controllers.insert(key, Arc::clone(controlled)),
        None => controllers.remove(&key),
    };
}

impl Indexed for ReplicaSet {
    const KIND: Kind = Kind::ReplicaSet;
    type Kept = Controlled;

    fn keep(self, _: &mut Core) -> Option<Parsed<Controlled>> {
        Some(convert::replica_set(&self))
    }

    fn table(core: &mut Core) -> &mut Table<Controlled> {
        &mut core.workloads.replica_sets
    }

    fn settle(core: &mut Core, change: &Change<Controlled>) {
        settle(core, ControllerKind::ReplicaSet, change);
    }

    fn event(_: Change<Controlled>) -> Option<Event> {
        None
    }
}

impl Indexed for StatefulSet {
    const KIND: Kind = Kind::StatefulSet;
    type Kept = Controlled;

    fn keep(self, _: &mut Core) -> Option<Parsed<Controlled>> {
        Some(convert::stateful_set(&self))
    }

    fn table(core: &mut Core) -> &mut Table<Controlled> {
        &mut core.workloads.stateful_sets
    }

    fn settle(core: &mut Core, change: &Change<Controlled>) {
        settle(core, ControllerKind::StatefulSet, change);
    }

    fn event(_: Change<Controlled>) -> Option<Event> {
        None
    }
}

impl Indexed for ReplicationController {
    const KIND: Kind = Kind::ReplicationController;
    type Kept = Controlled;

    fn keep(self, _: &mut Core) -> Option<Parsed<Controlled>> {
        Some(convert::replication_controller(&self).into())
    }

    fn table(core: &mut Core) -> &mut Table<Controlled> {
        &mut core.workloads.replication_controllers
    }

    fn settle(core: &mut Core, change: &Change<Controlled>) {
        settle(core, ControllerKind::ReplicationController, change);
    }

    fn event(_: Change<Controlled>) -> Option<Event> {
        None
    }
}
