//! What a fleet's errors teach about what not to ask for next.

use model::CapacityType;
use tracing::debug;

use super::{AwsProvider, launch::Launch};
use crate::{
    error::launch_failure,
    launch::outcome::{self, Lesson},
    offering::Spot,
    ports::FleetError,
};

impl AwsProvider {
    /// Takes note of every error of an answer, also beside an instance: the fleet tried these offerings first.
    pub(super) fn learn(&self, launch: &Launch<'_>, errors: &[FleetError]) {
        for FleetError { error, failed } in errors {
            let zone = failed.as_ref().and_then(|failed| failed.zone.as_deref()).unwrap_or("");
            let zone_id = self.zone_id(Some(launch.class), zone);
            let reason = launch_failure(&error.to_string()).reason;
            self.services
                .metrics
                .launch_failed((zone, &zone_id), launch.capacity_type, reason);
            debug!(NodeClaim = %launch.request.claim, zone, %error, "an offering could not be had");
        }
        for lesson in outcome::lessons(errors, launch.capacity_type, launch.group.is_some()) {
            self.heed(launch, &lesson);
        }
    }

    fn heed(&self, launch: &Launch<'_>, lesson: &Lesson) {
        let (catalog, resolver) = (&self.services.catalog, &self.services.resolver);
        let group = launch.group.as_ref().map(|group| group.id.as_str());
        let capacity_type = launch.capacity_type;
        match lesson {
            Lesson::Offering { instance_type, zone } => catalog.shortages(|shortages| {
                let spot = Spot {
                    capacity_type,
                    instance_type,
                    zone,
                };
                match (group, launch.partition) {
                    (Some(group), Some(partition)) => shortages.mark_partition(spot, group, partition),
                    _ => shortages.mark(spot, group),
                }
            }),
            Lesson::ZoneOfGroup { zone } => catalog.shortages(|shortages| {
                for shape in &launch.types {
                    let spot = Spot {
                        capacity_type,
                        instance_type: shape.name.as_str(),
                        zone,
                    };
                    shortages.mark(spot, group);
                }
            }),
            Lesson::NoSpot => catalog.shortages(|shortages| shortages.mark_capacity_type(CapacityType::Spot)),
            Lesson::Subnet(subnet) => {
                catalog.shortages(|shortages| shortages.mark_subnet(subnet));
                resolver.subnets.addresses(|addresses| addresses.exhausted(subnet));
            }
            Lesson::Reservation { instance_type, zone } => {
                if let Some(id) = launch.reservation(instance_type, zone) {
                    resolver.reservations.exhausted(&id);
                }
            }
        }
    }
}
