//! A small cluster with devices, and the first fit that asks for them.

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use model::{
    CapacityType, InstanceType, Labels, NodeKey, Overhead, Pod, PodKey, Quantity, Requirement, Requirements, Resources,
    Snapshot, StateNode,
    dra::{
        AllocatedDevice, Amounts, Ask, AttributeBinding, AttributeValue, ClaimAllocation, ConstraintRule, Consumer,
        CounterSet, CounterUse, Device, DeviceAsk, DeviceCapacity, DeviceClass, DeviceConstraint, DeviceCount,
        DeviceId, DeviceRequest, DeviceSelector, DynamicResources, NodeSelection, NodeTerms, PublishedDevice, Reach,
        RequestPolicy, ResourceClaim, ResourceSlice, ResourceSliceTemplate,
    },
    pod::{PodClaim, PodClaimSource},
    samples, vocabulary,
};

use crate::dra::{Devices, Grant, HostView};

pub const GPU: &str = "gpu.example.com";

#[derive(Default)]
pub struct Fixture {
    pub snapshot: Snapshot,
    pub kinds: Vec<InstanceType>,
    /// The zones in which nodes can be planned.
    pub zones: Vec<&'static str>,
}

pub fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

pub fn amounts(pairs: &[(&str, &str)]) -> Amounts {
    let pairs = pairs.iter();
    pairs
        .map(|(name, amount)| (Arc::from(*name), quantity(amount)))
        .collect()
}

/// One device of class `class`.
pub fn one(class: &str) -> DeviceAsk {
    some(class, 1)
}

pub fn some(class: &str, count: usize) -> DeviceAsk {
    DeviceAsk {
        class: class.into(),
        selectors: Vec::new(),
        count: DeviceCount::Exactly(count),
        capacity: Amounts::new(),
    }
}

pub fn all(class: &str) -> DeviceAsk {
    DeviceAsk {
        count: DeviceCount::All,
        ..one(class)
    }
}

pub fn where_(mut ask: DeviceAsk, expression: &str) -> DeviceAsk {
    ask.selectors.push(DeviceSelector::Cel(expression.into()));
    ask
}

pub fn request(name: &str, ask: DeviceAsk) -> DeviceRequest {
    DeviceRequest {
        name: name.into(),
        ask: Ask::Exactly(ask),
    }
}

pub fn claim(name: &str, asks: Vec<DeviceAsk>) -> ResourceClaim {
    let requests = asks.into_iter().enumerate();
    ResourceClaim {
        key: PodKey::new("default", name),
        requests: requests
            .map(|(place, ask)| request(&format!("r{place}"), ask))
            .collect(),
        constraints: Vec::new(),
        allocation: None,
        reserved_for: Vec::new(),
        deleting: false,
    }
}

pub fn same(attribute: &str) -> DeviceConstraint {
    DeviceConstraint {
        requests: Default::default(),
        rule: ConstraintRule::MatchAttribute(attribute.into()),
    }
}

/// The claim holds a device; `consumed` for a portion of it.
pub fn holding(
    mut claim: ResourceClaim,
    device: &DeviceId,
    consumed: Option<Amounts>,
    users: &[&str],
) -> ResourceClaim {
    claim.allocation = Some(ClaimAllocation {
        devices: vec![AllocatedDevice {
            id: device.clone(),
            consumed,
        }],
        nodes: None,
    });
    claim.reserved_for = users.iter().map(|uid| Consumer::Pod((*uid).into())).collect();
    claim
}

pub fn zone(zone: &str) -> NodeTerms {
    NodeTerms(vec![NodeSelection {
        labels: [Requirement::one_of(vocabulary::ZONE, [zone])].into_iter().collect(),
        names: None,
    }])
}

pub fn devices(names: &[&str]) -> Vec<Device> {
    names.iter().map(|name| Device::named(name)).collect()
}

pub fn with_attribute(mut device: Device, name: &str, value: &str) -> Device {
    device
        .attributes
        .insert(name.into(), AttributeValue::Text(value.into()));
    device
}

pub fn shareable(name: &str, memory: &str, policy: Option<RequestPolicy>) -> Device {
    Device {
        capacity: BTreeMap::from([(
            "memory".into(),
            DeviceCapacity {
                value: quantity(memory),
                policy,
            },
        )]),
        shareable: true,
        ..Device::named(name)
    }
}

pub fn drawing(name: &str, set: &str, counters: &[(&str, &str)]) -> Device {
    Device {
        consumes: vec![CounterUse {
            set: set.into(),
            counters: amounts(counters),
        }],
        ..Device::named(name)
    }
}

pub fn counters(name: &str, counters: &[(&str, &str)]) -> Vec<CounterSet> {
    vec![CounterSet {
        name: name.into(),
        counters: amounts(counters),
    }]
}

pub fn slice(pool: &str, devices: Vec<Device>, reach: Reach) -> ResourceSlice {
    let reach = Arc::new(reach);
    let published = |device| PublishedDevice {
        device: Arc::new(device),
        reach: reach.clone(),
    };
    ResourceSlice {
        name: pool.into(),
        driver: GPU.into(),
        pool: pool.into(),
        generation: 1,
        slice_count: 1,
        devices: devices.into_iter().map(published).collect(),
        shared_counters: Vec::new(),
        owner_node: None,
    }
}

pub fn template(devices: Vec<Device>) -> ResourceSliceTemplate {
    ResourceSliceTemplate {
        driver: GPU.into(),
        pool: "own".into(),
        devices: devices.into_iter().map(Arc::new).collect(),
        shared_counters: Vec::new(),
    }
}

pub fn kind(name: &str, templates: Vec<ResourceSliceTemplate>) -> InstanceType {
    bound_kind(name, templates, Vec::new())
}

pub fn bound_kind(name: &str, templates: Vec<ResourceSliceTemplate>, bindings: Vec<AttributeBinding>) -> InstanceType {
    let requirements = [Requirement::one_of(vocabulary::INSTANCE_TYPE, [name])];
    InstanceType::new(
        name.into(),
        requirements.into_iter().collect(),
        vec![samples::offering(CapacityType::OnDemand, "z1", 1.0)],
        Resources::default(),
        Overhead::default(),
    )
    .with_dynamic_resources(Some(Arc::new(DynamicResources { templates, bindings })))
}

impl Fixture {
    pub fn new() -> Self {
        Self {
            zones: vec!["z1", "z2"],
            ..Self::default()
        }
        .class("gpu", GPU)
    }

    /// All devices of a driver.
    pub fn class(mut self, name: &str, driver: &str) -> Self {
        let class = DeviceClass {
            name: name.into(),
            selectors: vec![DeviceSelector::Cel(format!("device.driver == '{driver}'").into())],
        };
        self.snapshot.device_classes.insert(name.into(), Arc::new(class));
        self
    }

    pub fn claim(mut self, claim: ResourceClaim) -> Self {
        self.snapshot.resource_claims.insert(claim.key.clone(), Arc::new(claim));
        self
    }

    /// A claim of this name for one device.
    pub fn gpu_claims(self, names: &[&str]) -> Self {
        names
            .iter()
            .fold(self, |fixture, name| fixture.claim(claim(name, vec![one("gpu")])))
    }

    pub fn slice(mut self, slice: ResourceSlice) -> Self {
        self.snapshot
            .resource_slices
            .insert(slice.name.clone(), Arc::new(slice));
        self
    }

    pub fn kind(mut self, kind: InstanceType) -> Self {
        self.kinds.push(kind);
        self
    }

    /// A machine in zone z1 of this type.
    pub fn node(mut self, name: &str, kind: &str, initialized: bool) -> Self {
        let mut node = samples::node(name);
        node.labels = Labels::from([
            (vocabulary::HOSTNAME.into(), name.into()),
            (vocabulary::ZONE.into(), "z1".into()),
            (vocabulary::INSTANCE_TYPE.into(), kind.into()),
            (vocabulary::REGISTERED.into(), "true".into()),
            (vocabulary::INITIALIZED.into(), initialized.to_string().into()),
        ]);
        self.snapshot.put_node(Arc::new(StateNode {
            key: NodeKey::Claim(name.into()),
            claim: Some(samples::claim(name)),
            node: Some(node),
            nominated_until: None,
            marked_for_deletion: false,
        }));
        self
    }

    /// `name=claim,claim`, on a node that it is about to leave where it says `@node`. Names are UIDs.
    fn pod(text: &str) -> Pod {
        let (text, node) = match text.split_once('@') {
            Some((text, node)) => (text, Some(node)),
            None => (text, None),
        };
        let (name, claims) = text.split_once('=').unwrap_or((text, ""));
        let claim = |name: &str| PodClaim {
            name: name.to_owned(),
            source: PodClaimSource::Claim(name.to_owned()),
        };
        let mut pod = samples::pod(name);
        let claims = claims.split(',').filter(|name| !name.is_empty());
        Arc::make_mut(&mut pod.shape).resource_claims = claims.map(claim).collect();
        pod.node = node.map(Into::into);
        pod
    }

    /// Where pods go, and what their claims get: `type: device`, with a star for devices that are not published yet.
    pub fn placed(&self, pods: &[&str]) -> String {
        let pods: Vec<Pod> = pods.iter().map(|text| Self::pod(text)).collect();
        self.placed_pods(&pods)
    }

    pub fn placed_pods(&self, pods: &[Pod]) -> String {
        let mut run = Run {
            fixture: self,
            devices: Devices::new(&self.snapshot, pods),
            open: Vec::new(),
        };
        let mut text = String::new();
        for pod in pods {
            let host = run.place(pod);
            writeln!(text, "{} -> {host}", pod.key.name).unwrap();
        }
        for result in run.devices.results() {
            let kinds = result.devices.iter().map(|(kind, grants)| {
                let grants: Vec<String> = grants.iter().map(shown).collect();
                format!("{kind}: {}", grants.join(" "))
            });
            writeln!(text, "{}  {}", result.claim.name, kinds.collect::<Vec<_>>().join(" | ")).unwrap();
        }
        text
    }
}

fn shown(grant: &Grant) -> String {
    let star = if grant.template { "*" } else { "" };
    let alternative = grant
        .request
        .split_once('/')
        .map_or(String::new(), |(_, name)| format!("({name})"));
    let consumed = grant.consumed.iter().flatten();
    let consumed: String = consumed.map(|(_, amount)| format!("[{amount}]")).collect();
    format!("{}{star}{alternative}{consumed}", grant.device.device)
}

/// A planned node.
struct Open<'f> {
    kinds: Vec<&'f InstanceType>,
    requirements: Requirements,
}

struct Run<'f> {
    fixture: &'f Fixture,
    devices: Devices<'f>,
    open: Vec<Open<'f>>,
}

impl<'f> Run<'f> {
    fn place(&mut self, pod: &Pod) -> String {
        let claims = match self.devices.claims_of(pod) {
            Ok(claims) => claims,
            Err(refusal) => return refusal.to_string(),
        };
        for machine in self
            .fixture
            .snapshot
            .nodes
            .values()
            .filter(|machine| !machine.is_leaving())
        {
            let labels = Requirements::from_labels(machine.labels());
            let name = machine.instance_type().unwrap();
            let view = HostView::Node {
                key: &machine.key,
                name: machine.node_name(),
                initialized: machine.is_initialized(),
                kind: self.fixture.kinds.iter().find(|kind| kind.name == name),
                labels: &labels,
            };
            if let Ok(allocation) = self.devices.try_allocate(&claims, view) {
                self.devices.commit(view, allocation);
                return machine.key.to_string();
            }
        }
        let fresh = Open {
            kinds: self.fixture.kinds.iter().collect(),
            requirements: [Requirement::one_of(
                vocabulary::ZONE,
                self.fixture.zones.iter().copied(),
            )]
            .into_iter()
            .collect(),
        };
        self.open.push(fresh);
        let mut refused = String::new();
        for (id, open) in self.open.iter_mut().enumerate() {
            let view = HostView::Claim {
                id,
                kinds: &open.kinds,
                requirements: &open.requirements,
            };
            match self.devices.try_allocate(&claims, view) {
                Ok(allocation) => {
                    let kinds = allocation.kinds.iter().map(|place| open.kinds[*place]).collect();
                    open.kinds = kinds;
                    open.requirements.merge(&allocation.requirements);
                    let view = HostView::Claim {
                        id,
                        kinds: &open.kinds,
                        requirements: &open.requirements,
                    };
                    self.devices.commit(view, allocation);
                    let names: Vec<&str> = open.kinds.iter().map(|kind| kind.name.as_str()).collect();
                    let drivers: Vec<String> = self.devices.drivers_of(id).iter().map(ToString::to_string).collect();
                    let shown = format!("#{id} {} {} {}", names.join(","), open.requirements, drivers.join(","));
                    let opened = id + 1 == self.open.len();
                    if !opened {
                        self.open.pop();
                    }
                    return shown.trim_end().to_owned();
                }
                Err(refusal) => refused = refusal.to_string(),
            }
        }
        self.open.pop();
        refused
    }
}
