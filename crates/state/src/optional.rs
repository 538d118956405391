//! Kinds that are only watched where a feature gate asks for them: capacity buffers with the templates they are
//! measured in, and node overlays.

use std::sync::Arc;

use api::{convert::Parsed, v1alpha1::NodeOverlay, v1beta1::CapacityBuffer};
use imbl::OrdMap;
use k8s_openapi::api::core::v1::PodTemplate;
use model::{NodeKey, Pod, PodKey, snapshot::Room};

use crate::{Change, Event, Index, Indexed, Kind, ObjectKey, Table, index::Core, kinds::slim};

impl Indexed for CapacityBuffer {
    const KIND: Kind = Kind::CapacityBuffer;
    type Kept = CapacityBuffer;

    fn keep(self, _: &mut Core) -> Option<Parsed<CapacityBuffer>> {
        Some(slim(self).into())
    }

    fn table(core: &mut Core) -> &mut Table<CapacityBuffer> {
        &mut core.view_mut().buffers
    }

    fn settle(core: &mut Core, change: &Change<CapacityBuffer>) {
        let view = core.view_mut();
        if change.new.is_none() {
            view.unresolved_buffers.remove(&change.key);
        } else if change.old.is_none() {
            view.unresolved_buffers.insert(change.key.clone());
        }
    }

    fn event(change: Change<CapacityBuffer>) -> Option<Event> {
        Some(Event::Buffer(change))
    }
}

impl Indexed for PodTemplate {
    const KIND: Kind = Kind::PodTemplate;
    type Kept = PodTemplate;

    fn keep(self, _: &mut Core) -> Option<Parsed<PodTemplate>> {
        Some(slim(self).into())
    }

    fn table(core: &mut Core) -> &mut Table<PodTemplate> {
        &mut core.view_mut().pod_templates
    }

    fn settle(_: &mut Core, _: &Change<PodTemplate>) {}

    fn event(change: Change<PodTemplate>) -> Option<Event> {
        Some(Event::PodTemplate(change))
    }
}

impl Indexed for NodeOverlay {
    const KIND: Kind = Kind::NodeOverlay;
    type Kept = NodeOverlay;

    fn keep(self, _: &mut Core) -> Option<Parsed<NodeOverlay>> {
        Some(slim(self).into())
    }

    fn table(core: &mut Core) -> &mut Table<NodeOverlay> {
        &mut core.view_mut().overlays
    }

    fn settle(_: &mut Core, _: &Change<NodeOverlay>) {}

    fn event(change: Change<NodeOverlay>) -> Option<Event> {
        Some(Event::Overlay(change))
    }
}

/// Virtual pods enter the snapshot beside the real ones: whoever asks which pods need a place finds them.
impl Index {
    /// What a buffer keeps room for, in the place of what it kept room for before. A real pod of the same name wins.
    pub fn put_virtual_pods(&self, buffer: &ObjectKey, pods: Vec<Pod>) {
        self.write(|core| {
            remove_virtual_pods(core, buffer);
            let view = core.view_mut();
            let free = |pod: &Pod| !view.snapshot.pods.contains_key(&pod.key);
            let pods: Vec<Arc<Pod>> = pods.into_iter().filter(free).map(Arc::new).collect();
            let keys: Vec<PodKey> = pods.iter().map(|pod| pod.key.clone()).collect();
            for pod in pods {
                view.snapshot.put_pod(pod);
            }
            view.snapshot.version += 1;
            view.virtual_pods.insert(buffer.clone(), keys.into());
            view.unresolved_buffers.remove(buffer);
            core.publish(Event::Room(buffer.clone()));
        });
    }

    /// A buffer that is gone, or that cannot say what it is measured in, keeps no room.
    pub fn drop_virtual_pods(&self, buffer: &ObjectKey) {
        self.write(|core| {
            core.view_mut().unresolved_buffers.remove(buffer);
            if remove_virtual_pods(core, buffer) {
                core.view_mut().snapshot.version += 1;
                core.publish(Event::Room(buffer.clone()));
            }
        });
    }

    /// Buffers will be watched: until a round has placed their pods, nobody knows which machines hold room.
    pub fn await_room(&self) {
        self.write(|core| core.view_mut().snapshot.room = Room::Unknown);
    }

    /// How many virtual pods the last round has put on which machine.
    pub fn put_room(&self, held: OrdMap<NodeKey, u32>) {
        let held = Room::Held(held);
        self.write(|core| {
            let snapshot = &mut core.view_mut().snapshot;
            if snapshot.room != held {
                snapshot.version += 1;
                snapshot.room = held;
            }
        });
    }
}

/// Says whether there were any.
fn remove_virtual_pods(core: &mut Core, buffer: &ObjectKey) -> bool {
    let view = core.view_mut();
    let Some(keys) = view.virtual_pods.remove(buffer) else {
        return false;
    };
    for key in keys.iter() {
        if view.snapshot.pods.get(key).is_some_and(|pod| pod.is_virtual()) {
            view.snapshot.remove_pod(key);
        }
    }
    !keys.is_empty()
}
