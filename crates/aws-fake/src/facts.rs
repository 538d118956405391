//! What EC2 tells about its instance types, read from the table that is compiled in (`data/README.md`).

use std::sync::{Arc, LazyLock};

/// One instance type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InstanceType {
    pub name: String,
    /// The letters of the zones where it is sold.
    pub zones: String,
    pub on_demand_price: f64,
    pub architectures: Vec<String>,
    pub vcpus: u32,
    pub threads_per_core: u32,
    pub memory_mib: u64,
    pub clock_ghz: Option<f64>,
    pub cpu_manufacturer: String,
    pub cpu_features: Vec<String>,
    /// Absent on metal.
    pub hypervisor: Option<String>,
    pub bare_metal: bool,
    pub burstable: bool,
    pub current_generation: bool,
    pub ebs: Ebs,
    pub disks: Vec<Part>,
    /// `required` or `unsupported`, where there are disks.
    pub disks_nvme: String,
    pub gpus: Vec<Part>,
    pub accelerators: Vec<Part>,
    pub neuron: Vec<Part>,
    pub enclaves: bool,
    pub network: Network,
    pub placement_strategies: Vec<String>,
    pub usage_classes: Vec<String>,
    pub virtualization: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ebs {
    pub optimized: String,
    /// Baseline and maximum, where AWS tells them.
    pub mbps: Option<(u32, u32)>,
    pub iops: Option<(u32, u32)>,
    pub nvme: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    pub ena: String,
    pub encrypted: bool,
    pub efa_interfaces: Option<u32>,
    pub ipv4_per_interface: u32,
    pub ipv6_per_interface: u32,
    pub cards: Vec<Card>,
    pub performance: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Card {
    pub interfaces: u32,
    pub gbps: Option<f64>,
}

/// Several of the same kind: disks, GPUs, accelerators, Neuron devices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    pub count: u32,
    /// Gigabytes of a disk, mebibytes of anything else.
    pub size: u64,
    /// The manufacturer; of a Neuron device the number of its cores, of a disk what it is made of.
    pub kind: String,
    pub name: String,
}

static TABLE: LazyLock<Vec<Arc<InstanceType>>> = LazyLock::new(|| {
    let rows = include_str!("../data/us-west-2.csv").lines().skip(1);
    rows.map(|row| Arc::new(InstanceType::parse(row))).collect()
});

/// All types, by name.
pub fn instance_types() -> &'static [Arc<InstanceType>] {
    &TABLE
}

impl InstanceType {
    fn parse(row: &str) -> Self {
        let fields: Vec<&str> = row.split(',').collect();
        let [
            name,
            zones,
            price,
            architectures,
            vcpus,
            threads,
            memory,
            clock,
            cpu,
            features,
            hypervisor,
            metal,
            burstable,
            current,
            ebs_optimized,
            ebs_mbps,
            ebs_max_mbps,
            ebs_iops,
            ebs_max_iops,
            ebs_nvme,
            disks,
            disks_nvme,
            gpus,
            accelerators,
            neuron,
            enclaves,
            ena,
            encrypted,
            efa,
            ipv4,
            ipv6,
            cards,
            network,
            strategies,
            usage,
            virtualization,
        ] = fields[..]
        else {
            unreachable!("every row of the embedded table has 36 columns: {row}")
        };
        let words = |text: &str| {
            text.split('+')
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let both = |least: &str, most: &str| Some((least.parse().ok()?, most.parse().ok()?));
        Self {
            name: name.to_owned(),
            zones: zones.to_owned(),
            on_demand_price: number(price),
            architectures: words(architectures),
            vcpus: number(vcpus),
            threads_per_core: number(threads),
            memory_mib: number(memory),
            clock_ghz: clock.parse().ok(),
            cpu_manufacturer: cpu.to_owned(),
            cpu_features: words(features),
            hypervisor: (!hypervisor.is_empty()).then(|| hypervisor.to_owned()),
            bare_metal: metal == "1",
            burstable: burstable == "1",
            current_generation: current == "1",
            ebs: Ebs {
                optimized: ebs_optimized.to_owned(),
                mbps: both(ebs_mbps, ebs_max_mbps),
                iops: both(ebs_iops, ebs_max_iops),
                nvme: ebs_nvme.to_owned(),
            },
            disks: parts(disks),
            disks_nvme: disks_nvme.to_owned(),
            gpus: parts(gpus),
            accelerators: parts(accelerators),
            neuron: parts(neuron),
            enclaves: enclaves == "1",
            network: Network {
                ena: ena.to_owned(),
                encrypted: encrypted == "1",
                efa_interfaces: efa.parse().ok(),
                ipv4_per_interface: number(ipv4),
                ipv6_per_interface: number(ipv6),
                cards: self::cards(cards),
                performance: network.to_owned(),
            },
            placement_strategies: words(strategies),
            usage_classes: words(usage),
            virtualization: words(virtualization),
        }
    }

    pub fn interfaces(&self) -> u32 {
        self.network.cards.iter().map(|card| card.interfaces).sum()
    }

    pub fn runs_on(&self, architecture: &str) -> bool {
        self.architectures.iter().any(|own| own == architecture)
    }
}

fn number<N: std::str::FromStr>(text: &str) -> N {
    match text.parse() {
        Ok(number) => number,
        Err(_) => unreachable!("the embedded table has a number here: {text}"),
    }
}

fn parts(text: &str) -> Vec<Part> {
    let part = |text: &str| {
        let (count, rest) = text.split_once('x')?;
        let mut rest = rest.splitn(3, ':');
        Some(Part {
            count: number(count),
            size: number(rest.next()?),
            kind: rest.next()?.to_owned(),
            name: rest.next().unwrap_or_default().to_owned(),
        })
    };
    text.split('+').filter_map(part).collect()
}

fn cards(text: &str) -> Vec<Card> {
    let card = |text: &str| {
        let (interfaces, gbps) = text.split_once('@')?;
        Some(Card {
            interfaces: number(interfaces),
            gbps: gbps.parse().ok(),
        })
    };
    text.split('+').filter_map(card).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> &'static InstanceType {
        let found = instance_types().iter().find(|fact| fact.name == name);
        found.expect("a type of the table")
    }

    #[test]
    fn every_type_is_whole_and_has_its_place() {
        assert!(instance_types().len() > 1200);
        assert!(instance_types().is_sorted_by(|one, other| one.name < other.name));
        for fact in instance_types() {
            assert!(!fact.zones.is_empty() && fact.on_demand_price > 0.0, "{}", fact.name);
            assert!(
                !fact.network.cards.is_empty() && !fact.architectures.is_empty(),
                "{}",
                fact.name
            );
            assert_eq!(fact.disks.is_empty(), fact.disks_nvme.is_empty(), "{}", fact.name);
        }
    }

    #[test]
    fn figures_of_well_known_types() {
        let plain = named("m5.large");
        assert_eq!((plain.vcpus, plain.memory_mib, plain.on_demand_price), (2, 8192, 0.096));
        assert_eq!((plain.interfaces(), plain.network.ipv4_per_interface), (3, 10));
        let gpus = named("p4d.24xlarge");
        assert_eq!((gpus.gpus[0].count, gpus.gpus[0].name.as_str()), (8, "A100"));
        assert_eq!((gpus.interfaces(), gpus.network.efa_interfaces), (60, Some(4)));
        let chips = named("inf2.xlarge");
        assert_eq!(
            (chips.neuron[0].kind.as_str(), chips.neuron[0].name.as_str()),
            ("2", "Inferentia2")
        );
    }
}
