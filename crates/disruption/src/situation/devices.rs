//! Devices of a situation: those that types bring, those that nodes have, those that all nodes reach, and the claims
//! of pods that hold them.

use std::sync::Arc;

use model::{
    Pod, PodKey, Quantity, Snapshot,
    dra::{
        AllocatedDevice, Amounts, Ask, ClaimAllocation, Consumer, Device, DeviceAsk, DeviceCapacity, DeviceClass,
        DeviceCount, DeviceId, DeviceRequest, DynamicResources, NodeSelection, NodeTerms, PublishedDevice, Reach,
        ResourceClaim, ResourceSlice, ResourceSliceTemplate,
    },
    pod::{PodClaim, PodClaimSource},
};

use super::Line;

const DRIVER: &str = "gpu.example.com";
const CLASS: &str = "gpu";
const MEMORY: &str = "memory";

fn devices(line: &Line<'_>) -> Vec<Arc<Device>> {
    let count: usize = line.get("gpus").map_or(0, |count| count.parse().expect("a number"));
    let device = |number| Arc::new(Device::named(&format!("gpu-{number}")));
    (0..count).map(device).collect()
}

/// What a machine of the type will publish, for types with `gpus`.
pub(super) fn of_type(line: &Line<'_>) -> Option<Arc<DynamicResources>> {
    line.says("gpus").then(|| {
        Arc::new(DynamicResources {
            templates: vec![ResourceSliceTemplate {
                driver: DRIVER.into(),
                pool: "own".into(),
                devices: devices(line),
                shared_counters: Vec::new(),
            }],
            bindings: Vec::new(),
        })
    })
}

/// What a node has published, for nodes with `gpus`.
pub(super) fn of_node(line: &Line<'_>, snapshot: &mut Snapshot) {
    if line.says("gpus") {
        let owner = line.name.into();
        publish(line.name, devices(line), Reach::Node(line.name.into()), snapshot).owner_node = Some(owner);
    }
}

/// One device that every node reaches, and that claims may share as far as its memory goes.
pub(super) fn fabric(line: &Line<'_>, snapshot: &mut Snapshot) {
    let memory: Quantity = line.get("memory").expect("memory").parse().expect("a quantity");
    let capacity = DeviceCapacity {
        value: memory,
        policy: None,
    };
    let device = Device {
        capacity: [(MEMORY.into(), capacity)].into(),
        shareable: true,
        ..Device::named("gpu-0")
    };
    publish(line.name, vec![Arc::new(device)], Reach::Everywhere, snapshot);
}

fn publish<'s>(
    pool: &str,
    devices: Vec<Arc<Device>>,
    reach: Reach,
    snapshot: &'s mut Snapshot,
) -> &'s mut ResourceSlice {
    let class = DeviceClass {
        name: CLASS.into(),
        selectors: Vec::new(),
    };
    snapshot.device_classes.insert(CLASS.into(), Arc::new(class));
    let reach = Arc::new(reach);
    let published = |device| PublishedDevice {
        device,
        reach: reach.clone(),
    };
    let slice = ResourceSlice {
        name: pool.into(),
        driver: DRIVER.into(),
        pool: pool.into(),
        generation: 1,
        slice_count: 1,
        devices: devices.into_iter().map(published).collect(),
        shared_counters: Vec::new(),
        owner_node: None,
    };
    Arc::make_mut(snapshot.resource_slices.entry(pool.into()).or_insert(Arc::new(slice)))
}

fn memory(text: &str) -> Amounts {
    [(Arc::from(MEMORY), text.parse().expect("a quantity"))].into()
}

/// `holds=n1/gpu-0`, or a portion of what is shared: `holds=fabric/gpu-0/4Gi`, of which `wants=8Gi` was asked for.
pub(super) fn hold(line: &Line<'_>, pod: &mut Pod, snapshot: &mut Snapshot) {
    let Some(held) = line.get("holds") else { return };
    let mut parts = held.split('/');
    let (pool, device) = (parts.next().expect("a pool"), parts.next().expect("a device"));
    let consumed = parts.next().map(memory);
    let ask = DeviceAsk {
        class: CLASS.into(),
        selectors: Vec::new(),
        count: DeviceCount::Exactly(1),
        capacity: line
            .get("wants")
            .map(memory)
            .or_else(|| consumed.clone())
            .unwrap_or_default(),
    };
    let of_a_node = consumed.is_none().then(|| {
        NodeTerms(vec![NodeSelection {
            names: Some([pool.into()].into()),
            ..NodeSelection::default()
        }])
    });
    let claim = ResourceClaim {
        key: PodKey::new("default", line.name),
        requests: vec![DeviceRequest {
            name: "gpu".into(),
            ask: Ask::Exactly(ask),
        }],
        constraints: Vec::new(),
        allocation: Some(ClaimAllocation {
            devices: vec![AllocatedDevice {
                id: DeviceId::new(DRIVER, pool, device),
                consumed,
            }],
            nodes: of_a_node,
        }),
        reserved_for: vec![Consumer::Pod(pod.uid.clone())],
        deleting: false,
    };
    Arc::make_mut(&mut pod.shape).resource_claims.push(PodClaim {
        name: "gpu".to_owned(),
        source: PodClaimSource::Claim(line.name.to_owned()),
    });
    snapshot.resource_claims.insert(claim.key.clone(), Arc::new(claim));
}
