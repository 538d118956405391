//! Real instance types, and a class that is ready to use them.

use std::sync::Arc;

use api::{
    aws::{Ami, AmiRequirement, AmiSelectorTerm, EC2NodeClass, EC2NodeClassSpec, EC2NodeClassStatus, Subnet},
    conditions::{Conditions, HasConditions},
};
use clock::VirtualClock;
use jiff::Timestamp;
use kube::api::ObjectMeta;

use super::fake::FakeAws;
use crate::{
    Foundation, Services,
    discovery::Version,
    instance_type::Formulas,
    launch::template::ClusterFacts,
    options::Options,
    ports::{GpuInfo, InstanceStorage, InstanceTypeInfo, NetworkCard, NetworkInfo, NeuronInfo, TypeOffering},
};

pub const REGION: &str = "us-west-2";

pub fn options() -> Options {
    Options::for_cluster("demo")
}

/// Expressions, where they are allowed.
pub fn formulas() -> Formulas {
    let clock = VirtualClock::starting_at(Timestamp::UNIX_EPOCH);
    Formulas::new(Arc::new(clock), true)
}

/// A plain nitro type: name, cores, memory in MiB, interfaces, addresses per interface.
pub fn plain(name: &str, vcpus: i64, memory_mib: i64, interfaces: i64, addresses: i64) -> InstanceTypeInfo {
    InstanceTypeInfo {
        name: name.to_owned(),
        architectures: vec!["x86_64".to_owned()],
        usage_classes: vec!["on-demand".to_owned(), "spot".to_owned()],
        vcpus,
        manufacturer: Some("Intel".to_owned()),
        clock_ghz: Some(3.1),
        memory_mib,
        ebs_bandwidth_mbps: Some(4750),
        hypervisor: "nitro".to_owned(),
        nitro_enclaves: false,
        network: NetworkInfo {
            default_card: 0,
            cards: vec![NetworkCard {
                index: 0,
                max_interfaces: interfaces,
            }],
            ipv4_per_interface: addresses,
            max_efa_interfaces: 0,
            ena: true,
            encryption_in_transit: false,
        },
        placement_strategies: ["cluster", "partition", "spread"].map(str::to_owned).to_vec(),
        ..InstanceTypeInfo::default()
    }
}

pub fn m5_large() -> InstanceTypeInfo {
    plain("m5.large", 2, 8192, 3, 10)
}

pub fn t3_large() -> InstanceTypeInfo {
    plain("t3.large", 2, 8192, 3, 12)
}

pub fn m6g_large() -> InstanceTypeInfo {
    InstanceTypeInfo {
        architectures: vec!["arm64".to_owned()],
        manufacturer: Some("AWS".to_owned()),
        ..plain("m6g.large", 2, 8192, 3, 10)
    }
}

pub fn c6g_large() -> InstanceTypeInfo {
    InstanceTypeInfo {
        name: "c6g.large".to_owned(),
        memory_mib: 4096,
        ..m6g_large()
    }
}

pub fn a1_large() -> InstanceTypeInfo {
    InstanceTypeInfo {
        name: "a1.large".to_owned(),
        memory_mib: 4096,
        ..m6g_large()
    }
}

/// Two network cards, local disks, EFA, enclaves.
pub fn m6idn_32xlarge() -> InstanceTypeInfo {
    let mut info = plain("m6idn.32xlarge", 128, 524_288, 8, 50);
    info.network.cards.push(NetworkCard {
        index: 1,
        max_interfaces: 8,
    });
    info.network.max_efa_interfaces = 2;
    info.network.encryption_in_transit = true;
    info.nitro_enclaves = true;
    info.storage = Some(InstanceStorage {
        total_gb: 7600,
        nvme: true,
    });
    info
}

pub fn g4dn_8xlarge() -> InstanceTypeInfo {
    InstanceTypeInfo {
        gpus: vec![GpuInfo {
            name: "T4".to_owned(),
            manufacturer: "NVIDIA".to_owned(),
            count: 1,
            memory_mib: 16384,
        }],
        storage: Some(InstanceStorage {
            total_gb: 900,
            nvme: true,
        }),
        ..plain("g4dn.8xlarge", 32, 131_072, 4, 15)
    }
}

pub fn trn1_2xlarge() -> InstanceTypeInfo {
    InstanceTypeInfo {
        neuron: vec![NeuronInfo {
            name: "Trainium".to_owned(),
            count: 1,
            cores: 2,
        }],
        ..plain("trn1.2xlarge", 8, 32_768, 4, 15)
    }
}

pub fn m5_metal() -> InstanceTypeInfo {
    InstanceTypeInfo {
        hypervisor: String::new(),
        ..plain("m5.metal", 96, 393_216, 15, 50)
    }
}

pub fn all_types() -> Vec<InstanceTypeInfo> {
    vec![
        a1_large(),
        c6g_large(),
        g4dn_8xlarge(),
        m5_large(),
        plain("m5.xlarge", 4, 16384, 4, 15),
        m5_metal(),
        m6g_large(),
        m6idn_32xlarge(),
        t3_large(),
        trn1_2xlarge(),
    ]
}

pub fn subnet(id: &str, zone: &str, zone_id: &str) -> Subnet {
    Subnet {
        id: id.to_owned(),
        zone: zone.to_owned(),
        zone_id: Some(zone_id.to_owned()),
    }
}

/// An image for one architecture.
pub fn ami(id: &str, arch: &str) -> Ami {
    Ami {
        id: id.to_owned(),
        name: Some(format!("image-{id}")),
        deprecated: None,
        requirements: vec![AmiRequirement {
            key: "kubernetes.io/arch".to_owned(),
            operator: "In".to_owned(),
            values: Some(vec![arch.to_owned()]),
        }],
    }
}

/// A class named `default` whose selectors have been resolved: AL2023, two zones.
pub fn class() -> EC2NodeClass {
    EC2NodeClass {
        metadata: ObjectMeta {
            name: Some("default".to_owned()),
            uid: Some("class-uid".to_owned()),
            generation: Some(1),
            ..ObjectMeta::default()
        },
        spec: EC2NodeClassSpec {
            role: Some("node-role".to_owned()),
            ami_selector_terms: vec![AmiSelectorTerm {
                alias: Some("al2023@latest".to_owned()),
                ..AmiSelectorTerm::default()
            }],
            ..EC2NodeClassSpec::default()
        },
        status: Some(EC2NodeClassStatus {
            subnets: Some(vec![
                subnet("subnet-a", "us-west-2a", "usw2-az1"),
                subnet("subnet-b", "us-west-2b", "usw2-az2"),
            ]),
            security_groups: Some(vec![api::aws::SecurityGroup {
                id: "sg-1".to_owned(),
                name: Some("nodes".to_owned()),
            }]),
            amis: Some(vec![ami("ami-amd", "amd64"), ami("ami-arm", "arm64")]),
            instance_profile: Some("demo_1".to_owned()),
            ..EC2NodeClassStatus::default()
        }),
    }
}

/// A region that sells every sample type in three zones, with a foundation for cluster `demo` in it.
pub fn stocked(aws: &FakeAws) {
    let types = all_types();
    let sold = |info: &InstanceTypeInfo| {
        let instance_type = info.name.clone();
        ["us-west-2a", "us-west-2b", "us-west-2c"].map(|zone| TypeOffering {
            instance_type: instance_type.clone(),
            zone: zone.to_owned(),
        })
    };
    let offerings = types.iter().flat_map(sold).collect();
    aws.set_types(types, offerings);
}

pub fn foundation(aws: &FakeAws) -> Foundation {
    Foundation {
        aws: aws.ports(),
        clock: aws.clock(),
        options: Arc::new(options()),
        cluster: ClusterFacts {
            name: "demo".to_owned(),
            region: REGION.to_owned(),
            endpoint: "https://api.example.com".to_owned(),
            ca_bundle: Some("Y2VydGlmaWNhdGU=".to_owned()),
            service_cidr: Some("10.100.0.0/16".to_owned()),
            dns: None,
        },
        shifted_cluster: None,
        version: Version { major: 1, minor: 32 },
        reserved_capacity: true,
        strict_min_values: true,
        node_overlay: false,
        offering_sources: Vec::new(),
    }
}

pub fn services(aws: &FakeAws) -> Services {
    Services::new(foundation(aws))
}

/// The class of [`class`], with every condition true.
pub fn ready_class() -> EC2NodeClass {
    let mut class = class();
    let mut conditions = Conditions::of(&class, Timestamp::UNIX_EPOCH);
    for dependent in EC2NodeClass::DEPENDENTS {
        conditions.set_true(dependent, Timestamp::UNIX_EPOCH);
    }
    class.status.get_or_insert_default().conditions = Some(conditions.into_list());
    class
}
