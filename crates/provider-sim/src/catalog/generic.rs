//! The shapes that upstream's KWOK provider has built in, made by the rule that upstream made them by.
//!
//! Upstream's own end-to-end suites name them (`c-16x-amd64-linux`) and select on their sizes, so a controller that
//! is to pass those suites needs this catalog rather than the EC2 one.

use std::sync::Arc;

use model::{InstanceType, Quantity, ResourceName, Resources};

use super::{
    derive,
    ec2::{offering_labels, offerings},
};

const ZONES: [&str; 4] = ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"];
const CPUS: [i64; 12] = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256];
/// Family letter and GiB of memory per cpu.
const FAMILIES: [(&str, i64); 3] = [("c", 2), ("s", 4), ("m", 8)];
const PODS_PER_CPU: i64 = 16;
const MOST_PODS: i64 = 1024;
/// Made-up prices: dollars per hour for a cpu, and for a thousand million bytes of memory.
const CPU_PRICE: f64 = 0.025;
const MEMORY_PRICE: f64 = 0.001;

pub fn shapes() -> Vec<Arc<InstanceType>> {
    let sold = offering_labels(ZONES);
    let mut shapes = Vec::new();
    for cpu in CPUS {
        for (family, factor) in FAMILIES {
            for system in ["linux", "windows"] {
                for architecture in ["amd64", "arm64"] {
                    let name = format!("{family}-{cpu}x-{architecture}-{system}");
                    let bytes = (cpu * factor) << 30;
                    let capacity = Resources::new()
                        .with(ResourceName::CPU, Quantity::from_int(cpu))
                        .with(ResourceName::MEMORY, Quantity::from_bytes(bytes))
                        .with(
                            ResourceName::PODS,
                            Quantity::from_int((cpu * PODS_PER_CPU).min(MOST_PODS)),
                        )
                        .with(ResourceName::EPHEMERAL_STORAGE, Quantity::from_bytes(20 << 30));
                    let price = CPU_PRICE * cpu as f64 + MEMORY_PRICE * bytes as f64 / 1e9;
                    let offerings = offerings(&sold, price);
                    let requirements =
                        derive::requirements(&name, architecture, &[system.to_owned()], &capacity, &offerings);
                    let shape = InstanceType::new(name.into(), requirements, offerings, capacity, derive::overhead());
                    shapes.push(Arc::new(shape));
                }
            }
        }
    }
    shapes
}
