//! What only this provider counts, under the names that dashboards know.

#[cfg(any(test, feature = "specimen"))]
pub mod specimen;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::AtomicU64},
};

use crate::{batch::Gathered, interruption::StatusCategory};
use model::{CapacityType, InstanceType};
use parking_lot::Mutex;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

type Figure = Gauge<f64, AtomicU64>;
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// Requests in one batch; upstream's buckets.
const SIZES: [f64; 34] = [
    1.0, 2.0, 4.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 125.0, 150.0, 175.0,
    200.0, 225.0, 250.0, 275.0, 300.0, 350.0, 400.0, 450.0, 500.0, 550.0, 600.0, 700.0, 800.0, 900.0, 1000.0,
];
/// Seconds that a window was open; upstream's buckets for all that takes time.
const WAITS: [f64; 45] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 120.0,
    150.0, 300.0, 450.0, 600.0,
];

#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct OfType {
    instance_type: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct OfOffering {
    instance_type: String,
    capacity_type: &'static str,
    zone: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Failed {
    zone: String,
    zone_id: String,
    capacity_type: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AtZone {
    zone: String,
    zone_id: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfBatcher {
    batcher: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfCategory {
    category: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfClass {
    nodeclass: String,
}

/// All of them, with the registry that encodes them.
pub struct AwsMetrics {
    cores: Family<OfType, Figure>,
    memory: Family<OfType, Figure>,
    available: Family<OfOffering, Figure>,
    price: Family<OfOffering, Figure>,
    launch_failures: Family<Failed, Counter>,
    termination_failures: Family<AtZone, Counter>,
    batch_time: Histograms<OfBatcher>,
    batch_size: Histograms<OfBatcher>,
    unhealthy: Family<OfCategory, Counter>,
    user_data: Family<OfClass, Gauge>,
    /// Series that exist, so that those of types and zones that are gone can go.
    offered: Mutex<(BTreeSet<OfType>, BTreeSet<OfOffering>)>,
    registry: Registry,
}

impl Default for AwsMetrics {
    fn default() -> Self {
        let mut metrics = Self {
            cores: Family::default(),
            memory: Family::default(),
            available: Family::default(),
            price: Family::default(),
            launch_failures: Family::default(),
            termination_failures: Family::default(),
            batch_time: Family::new_with_constructor(|| Histogram::new(WAITS)),
            batch_size: Family::new_with_constructor(|| Histogram::new(SIZES)),
            unhealthy: Family::default(),
            user_data: Family::default(),
            offered: Mutex::default(),
            registry: Registry::default(),
        };
        metrics.register();
        metrics
    }
}

impl AwsMetrics {
    fn register(&mut self) {
        let to = &mut self.registry;
        to.register(
            "karpenter_cloudprovider_instance_type_cpu_cores",
            "Cores of an instance type",
            self.cores.clone(),
        );
        to.register(
            "karpenter_cloudprovider_instance_type_memory_bytes",
            "Memory of an instance type",
            self.memory.clone(),
        );
        to.register(
            "karpenter_cloudprovider_instance_type_offering_available",
            "Whether any pool could buy the offering now",
            self.available.clone(),
        );
        to.register(
            "karpenter_cloudprovider_instance_type_offering_price_estimate",
            "Dollars per hour that the offering costs",
            self.price.clone(),
        );
        to.register(
            "karpenter_cloudprovider_instance_launch_failures",
            "Offerings that a fleet could not get",
            self.launch_failures.clone(),
        );
        to.register(
            "karpenter_cloudprovider_instance_termination_failures",
            "Instances whose end could not be asked for",
            self.termination_failures.clone(),
        );
        to.register(
            "karpenter_cloudprovider_batcher_batch_time_seconds",
            "How long requests were gathered",
            self.batch_time.clone(),
        );
        to.register(
            "karpenter_cloudprovider_batcher_batch_size",
            "How many requests were gathered",
            self.batch_size.clone(),
        );
        to.register(
            "karpenter_interruption_instance_status_unhealthy",
            "Instances that EC2 found ill, once per illness",
            self.unhealthy.clone(),
        );
        to.register(
            "karpenter_ec2nodeclasses_userdata_bytes",
            "Size of the user data of the class's last launch template",
            self.user_data.clone(),
        );
    }

    /// The families, as a registry encodes them.
    pub fn encoded(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string succeeds");
        text
    }

    pub(crate) fn gathered(&self, batcher: &'static str, gathered: Gathered) {
        let labels = OfBatcher { batcher };
        self.batch_time
            .get_or_create(&labels)
            .observe(gathered.took.as_secs_f64());
        // Windows hold a thousand requests at most.
        self.batch_size.get_or_create(&labels).observe(gathered.requests as f64);
    }

    pub(crate) fn launch_failed(&self, place: (&str, &str), capacity_type: CapacityType, reason: &'static str) {
        let labels = Failed {
            zone: place.0.to_owned(),
            zone_id: place.1.to_owned(),
            capacity_type: capacity_type.as_str(),
            reason,
        };
        self.launch_failures.get_or_create(&labels).inc();
    }

    pub(crate) fn termination_failed(&self, zone: &str, zone_id: &str) {
        let labels = AtZone {
            zone: zone.to_owned(),
            zone_id: zone_id.to_owned(),
        };
        self.termination_failures.get_or_create(&labels).inc();
    }

    pub fn found_unhealthy(&self, category: StatusCategory) {
        let category = category.reason();
        self.unhealthy.get_or_create(&OfCategory { category }).inc();
    }

    pub fn user_data(&self, class: &str, bytes: usize) {
        let nodeclass = class.to_owned();
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.user_data.get_or_create(&OfClass { nodeclass }).set(bytes);
    }

    pub fn class_gone(&self, class: &str) {
        let nodeclass = class.to_owned();
        self.user_data.remove(&OfClass { nodeclass });
    }

    /// What pools see of the region. An offering is available when any of them can buy it.
    pub fn offered<'a>(&self, catalogs: impl IntoIterator<Item = &'a [Arc<InstanceType>]>, reserved_zones: bool) {
        let mut types: BTreeSet<OfType> = BTreeSet::new();
        let mut seen: BTreeMap<OfOffering, (bool, f64)> = BTreeMap::new();
        for shape in catalogs.into_iter().flatten() {
            let instance_type = shape.name.to_string();
            let of_type = OfType {
                instance_type: instance_type.clone(),
            };
            self.cores
                .get_or_create(&of_type)
                .set(shape.capacity.get("cpu").as_f64());
            self.memory
                .get_or_create(&of_type)
                .set(shape.capacity.get("memory").as_f64());
            types.insert(of_type);
            for offering in &shape.offerings {
                let key = |capacity_type: CapacityType| OfOffering {
                    instance_type: instance_type.clone(),
                    capacity_type: capacity_type.as_str(),
                    zone: offering.zone.to_string(),
                };
                if reserved_zones {
                    seen.entry(key(CapacityType::Reserved)).or_insert((false, 0.0));
                }
                let known = seen.entry(key(offering.capacity_type)).or_insert((false, 0.0));
                *known = (known.0 || offering.available, offering.price);
            }
        }
        let mut offered = self.offered.lock();
        for gone in offered.0.difference(&types) {
            self.cores.remove(gone);
            self.memory.remove(gone);
        }
        for gone in offered.1.iter().filter(|known| !seen.contains_key(known)) {
            self.available.remove(gone);
            self.price.remove(gone);
        }
        for (key, (is_available, price)) in &seen {
            self.available
                .get_or_create(key)
                .set(if *is_available { 1.0 } else { 0.0 });
            self.price.get_or_create(key).set(*price);
        }
        *offered = (types, seen.into_keys().collect());
    }
}

#[cfg(test)]
mod tests {
    use model::{Offering, Overhead, Quantity, Requirements, Resources};

    use super::*;

    fn shape(name: &str, offerings: &[(CapacityType, &str, bool)]) -> Arc<InstanceType> {
        let offering = |(capacity_type, zone, available): &(CapacityType, &str, bool)| Offering {
            capacity_type: *capacity_type,
            zone: (*zone).into(),
            price: 0.5,
            available: *available,
            requirements: Requirements::new(),
            reservation_capacity: None,
            capacity_override: None,
            overhead_override: None,
        };
        let capacity = Resources::new()
            .with("cpu".into(), Quantity::from_int(2))
            .with("memory".into(), Quantity::from_bytes(1 << 30));
        Arc::new(InstanceType::new(
            name.into(),
            Requirements::new(),
            offerings.iter().map(offering).collect(),
            capacity,
            Overhead::default(),
        ))
    }

    /// AW24.9.11, AW24.10.1, AW24.10.12
    #[test]
    fn an_offering_is_available_when_any_pool_can_buy_it() {
        use CapacityType::OnDemand;
        let metrics = AwsMetrics::default();
        let one = [shape("m5.large", &[(OnDemand, "a", false), (OnDemand, "b", true)])];
        let other = [shape("m5.large", &[(OnDemand, "a", true)])];
        metrics.offered([&one[..], &other[..]], false);
        let text = metrics.encoded();
        let has = |text: &str, line: &str| text.lines().any(|found| found == line);
        let series = |name: &str, zone: &str| {
            let family = "karpenter_cloudprovider_instance_type_offering_";
            format!("{family}{name}{{instance_type=\"m5.large\",capacity_type=\"on-demand\",zone=\"{zone}\"}}")
        };
        assert!(has(&text, &format!("{} 1.0", series("available", "a"))), "{text}");
        assert!(has(&text, &format!("{} 0.5", series("price_estimate", "b"))), "{text}");
        assert!(has(
            &text,
            "karpenter_cloudprovider_instance_type_cpu_cores{instance_type=\"m5.large\"} 2.0"
        ));
        assert!(!text.contains("capacity_type=\"reserved\""));

        metrics.offered([&one[..1]], true);
        assert!(metrics.encoded().contains("capacity_type=\"reserved\""));
        metrics.offered([], true);
        let text = metrics.encoded();
        for family in [
            "offering_available{",
            "offering_price_estimate{",
            "cpu_cores{",
            "memory_bytes{",
        ] {
            assert!(!text.contains(family), "series of what is gone go too: {text}");
        }
    }
}
