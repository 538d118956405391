//! The families of a process to which everything has happened once, for the reference in the book.

use std::{sync::Arc, time::Duration};

use model::{CapacityType, InstanceType, Offering, Overhead, Quantity, Requirements, Resources};

use super::AwsMetrics;
use crate::{batch::Gathered, interruption::StatusCategory};

pub fn specimen() -> String {
    let metrics = AwsMetrics::default();
    let offering = Offering {
        capacity_type: CapacityType::Spot,
        zone: "us-west-2a".into(),
        price: 0.05,
        available: true,
        requirements: Requirements::new(),
        reservation_capacity: None,
        capacity_override: None,
        overhead_override: None,
    };
    let capacity = Resources::new()
        .with("cpu".into(), Quantity::from_int(2))
        .with("memory".into(), Quantity::from_bytes(8 << 30));
    let shape = InstanceType::new(
        "m5.large".into(),
        Requirements::new(),
        vec![offering],
        capacity,
        Overhead::default(),
    );
    metrics.offered([&[Arc::new(shape)][..]], false);
    let gathered = Gathered {
        requests: 1,
        took: Duration::from_millis(100),
    };
    metrics.gathered("create_fleet", gathered);
    let place = ("us-west-2a", "usw2-az1");
    metrics.launch_failed(place, CapacityType::Spot, "InsufficientInstanceCapacity");
    metrics.termination_failed(place.0, place.1);
    metrics.found_unhealthy(StatusCategory::Instance);
    metrics.user_data("default", 1);
    metrics.encoded()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_registered_is_left_out() {
        let registered = include_str!("../metrics.rs").matches("to.register(").count();
        assert_eq!(specimen().matches("# TYPE ").count(), registered);
    }
}
