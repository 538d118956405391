//! Whether the devices that a claim was launched for have been published.

use std::{collections::BTreeMap, sync::Arc};

use api::{labels::annotations::REQUESTED_DRA_DRIVERS, v1::NodeClaim};
use kube::ResourceExt;
use model::{
    NodeName,
    dra::{Reach, ResourceSlice},
};

/// The first driver that pods of this claim count on and that has no complete pool on the node.
pub fn unpublished_driver<'a>(
    claim: &NodeClaim,
    node: &str,
    slices: impl Iterator<Item = &'a Arc<ResourceSlice>>,
) -> Option<String> {
    let asked = claim.annotations().get(REQUESTED_DRA_DRIVERS)?;
    let mut drivers = asked
        .split(',')
        .map(str::trim)
        .filter(|driver| !driver.is_empty())
        .peekable();
    drivers.peek()?;
    let published: Vec<_> = slices.filter(|slice| is_of(slice, node)).collect();
    drivers
        .find(|driver| !has_complete_pool(&published, driver))
        .map(str::to_owned)
}

fn is_of(slice: &ResourceSlice, node: &str) -> bool {
    let reached_there = |reach: &Reach| matches!(reach, Reach::Node(name) if name.as_str() == node);
    slice.owner_node.as_ref().is_some_and(|owner| owner.as_str() == node)
        || slice.devices.iter().any(|device| reached_there(&device.reach))
}

/// A pool is complete when all slices of its newest generation are there.
fn has_complete_pool(slices: &[&Arc<ResourceSlice>], driver: &str) -> bool {
    let mut pools: BTreeMap<&str, Vec<&ResourceSlice>> = BTreeMap::new();
    for slice in slices.iter().filter(|slice| &*slice.driver == driver) {
        pools.entry(&slice.pool).or_default().push(slice);
    }
    pools.into_values().any(|slices| {
        let newest = slices.iter().map(|slice| slice.generation).max();
        let current: Vec<_> = slices.iter().filter(|slice| Some(slice.generation) == newest).collect();
        current
            .first()
            .is_some_and(|slice| i64::try_from(current.len()) == Ok(slice.slice_count))
    })
}

/// The nodes that a slice tells something about.
pub fn nodes_of(slice: &ResourceSlice) -> impl Iterator<Item = &str> {
    let reached = slice.devices.iter().filter_map(|device| match &*device.reach {
        Reach::Node(name) => Some(name.as_str()),
        Reach::Nodes(_) | Reach::Everywhere | Reach::Nowhere => None,
    });
    slice.owner_node.iter().map(NodeName::as_str).chain(reached)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(driver: &str, pool: &str, generation: i64, slice_count: i64) -> Arc<ResourceSlice> {
        Arc::new(ResourceSlice {
            name: "s".into(),
            driver: driver.into(),
            pool: pool.into(),
            generation,
            slice_count,
            devices: Vec::new(),
            shared_counters: Vec::new(),
            owner_node: Some("n".into()),
        })
    }

    #[track_caller]
    fn check(drivers: Option<&str>, slices: &[Arc<ResourceSlice>], missing: Option<&str>) {
        let mut claim = NodeClaim::default();
        if let Some(drivers) = drivers {
            let annotations = claim.metadata.annotations.get_or_insert_default();
            annotations.insert(REQUESTED_DRA_DRIVERS.to_owned(), drivers.to_owned());
        }
        assert_eq!(unpublished_driver(&claim, "n", slices.iter()).as_deref(), missing);
    }

    /// LC-I8: incomplete, missing, one of two, only a stale generation.
    #[test]
    fn a_claim_waits_for_a_complete_pool_of_every_driver() {
        check(Some("gpu"), &[], Some("gpu"));
        check(Some("gpu"), &[slice("gpu", "p", 1, 2)], Some("gpu"));
        check(Some("gpu"), &[slice("nic", "p", 1, 1)], Some("gpu"));
        check(Some("gpu, nic"), &[slice("gpu", "p", 1, 1)], Some("nic"));
        let stale = [slice("gpu", "p", 1, 1), slice("gpu", "p", 2, 2)];
        check(Some("gpu"), &stale, Some("gpu"));
        check(Some("gpu"), &[slice("gpu", "p", 2, 2), slice("gpu", "p", 2, 2)], None);
        let another = [slice("gpu", "p", 1, 2), slice("gpu", "q", 1, 1)];
        check(Some("gpu"), &another, None);
        let elsewhere = Arc::new(ResourceSlice {
            owner_node: Some("other".into()),
            ..(*slice("gpu", "p", 1, 1)).clone()
        });
        check(Some("gpu"), &[elsewhere], Some("gpu"));
    }

    /// LC-I9: no drivers recorded.
    #[test]
    fn a_claim_without_drivers_waits_for_none() {
        check(None, &[], None);
        check(Some(""), &[], None);
    }
}
