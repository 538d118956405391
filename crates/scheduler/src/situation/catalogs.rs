//! The catalogues that the behaviour specification tells its scenarios with.

use model::{
    CapacityType, InstanceType, Offering, Overhead, Quantity, Requirement, Requirements, ResourceName, Resources,
    vocabulary,
};

pub(crate) const SIZE: &str = "size";
pub(crate) const SPECIAL: &str = "special";
pub(crate) const INTEGER: &str = "integer";

const SYSTEMS: [&str; 3] = ["linux", "windows", "darwin"];
const GIB: i64 = 1 << 30;

/// Where and how every type of the first two catalogues is sold.
const SOLD: [(CapacityType, &str); 5] = [
    (CapacityType::Spot, "test-zone-1"),
    (CapacityType::Spot, "test-zone-2"),
    (CapacityType::OnDemand, "test-zone-1"),
    (CapacityType::OnDemand, "test-zone-2"),
    (CapacityType::OnDemand, "test-zone-3"),
];

struct Kind<'a> {
    name: &'a str,
    cpu: i64,
    gib: i64,
    pods: i64,
    arch: &'a str,
    systems: Vec<&'a str>,
    device: Option<&'a str>,
    sold: Vec<(CapacityType, &'a str)>,
}

impl<'a> Kind<'a> {
    fn new(name: &'a str, cpu: i64, gib: i64, pods: i64) -> Self {
        Self {
            name,
            cpu,
            gib,
            pods,
            arch: "amd64",
            systems: SYSTEMS.to_vec(),
            device: None,
            sold: SOLD.to_vec(),
        }
    }

    fn build(self) -> InstanceType {
        let memory = self.gib * GIB;
        let accelerators = if self.device.is_some() { 1.0 } else { 0.0 };
        let price = 0.1 * self.cpu as f64 + 0.1 * memory as f64 / 1e9 + accelerators;
        let offering = |(capacity_type, zone): &(CapacityType, &str)| Offering {
            capacity_type: *capacity_type,
            zone: (*zone).into(),
            price,
            available: true,
            requirements: [
                (vocabulary::ZONE, *zone),
                (vocabulary::CAPACITY_TYPE, capacity_type.as_str()),
            ]
            .into_iter()
            .map(|(key, value)| Requirement::one_of(key, [value]))
            .collect(),
            reservation_capacity: None,
            capacity_override: None,
            overhead_override: None,
        };
        let large = self.cpu > 4 && self.gib > 8;
        let cpus = self.cpu.to_string();
        let requirements: Requirements = [
            Requirement::one_of(vocabulary::INSTANCE_TYPE, [self.name]),
            Requirement::one_of(vocabulary::ARCH, [self.arch]),
            Requirement::one_of(vocabulary::OS, self.systems),
            Requirement::one_of(vocabulary::ZONE, self.sold.iter().map(|(_, zone)| *zone)),
            Requirement::one_of(
                vocabulary::CAPACITY_TYPE,
                self.sold.iter().map(|(sold, _)| sold.as_str()),
            ),
            Requirement::one_of(SIZE, [if large { "large" } else { "small" }]),
            Requirement::one_of(SPECIAL, large.then_some("optional")),
            Requirement::one_of(INTEGER, [cpus.as_str()]),
        ]
        .into_iter()
        .collect();
        let mut capacity = Resources::default()
            .with(ResourceName::CPU, Quantity::from_int(self.cpu))
            .with(ResourceName::MEMORY, Quantity::from_bytes(memory))
            .with(ResourceName::PODS, Quantity::from_int(self.pods));
        if let Some(device) = self.device {
            capacity.set(device.into(), Quantity::from_int(2));
        }
        let overhead = Overhead {
            kube_reserved: Resources::default()
                .with(ResourceName::CPU, "100m".parse().unwrap())
                .with(ResourceName::MEMORY, "10Mi".parse().unwrap()),
            ..Overhead::default()
        };
        let offerings = self.sold.iter().map(offering).collect();
        InstanceType::new(self.name.into(), requirements, offerings, capacity, overhead)
    }
}

/// `standard`, `assorted` or `fake-N`.
pub(super) fn named(name: &str) -> Vec<InstanceType> {
    match name.strip_prefix("fake-").map(|count| count.parse::<i64>().unwrap()) {
        Some(count) => (0..count).map(fake).collect(),
        None if name == "standard" => standard(),
        None if name == "assorted" => assorted(),
        None => panic!("there is no catalogue {name}"),
    }
}

fn fake(number: i64) -> InstanceType {
    let name = format!("fake-it-{number}");
    Kind::new(&name, number + 1, 2 * (number + 1), 10 * (number + 1)).build()
}

fn standard() -> Vec<InstanceType> {
    let mut arm = Kind::new("arm-instance-type", 16, 128, 5);
    arm.arch = "arm64";
    arm.systems.push("ios");
    let with = |name, device| Kind {
        device: Some(device),
        ..Kind::new(name, 4, 4, 5)
    };
    [
        Kind::new("default-instance-type", 4, 4, 5),
        Kind::new("small-instance-type", 2, 2, 5),
        with("gpu-vendor-instance-type", "fake.com/vendor-a"),
        with("gpu-vendor-b-instance-type", "fake.com/vendor-b"),
        arm,
        Kind::new("single-pod-instance-type", 4, 4, 1),
    ]
    .map(Kind::build)
    .into()
}

fn assorted() -> Vec<InstanceType> {
    let mut all = Vec::new();
    for cpu in [1, 2, 4, 8, 16, 32, 64] {
        for gib in [1, 2, 4, 8, 16, 32, 64, 128] {
            for zone in ["test-zone-1", "test-zone-2", "test-zone-3"] {
                for sold in [CapacityType::Spot, CapacityType::OnDemand] {
                    for system in ["linux", "windows"] {
                        for arch in ["amd64", "arm64"] {
                            let name = format!("{cpu}-cpu-{gib}-mem-{arch}-{system}-{zone}-{sold}");
                            let kind = Kind {
                                arch,
                                systems: vec![system],
                                sold: vec![(sold, zone)],
                                ..Kind::new(&name, cpu, gib, 5)
                            };
                            all.push(kind.build());
                        }
                    }
                }
            }
        }
    }
    all
}
