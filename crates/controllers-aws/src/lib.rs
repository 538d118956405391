//! The controllers that only clusters on EC2 have, beside those of crate `controllers`.
//!
//! They observe through the same index, write through the same writer, and ask AWS through what they share with the
//! provider: [`provider_aws::Services`]. What they decide is decided there or in functions beside them.
//!
//! [`assembly::Ec2`] is where a program starts.
//!
//! | Module | Question |
//! | --- | --- |
//! | [`node_class`] | what do the selectors of a class mean, can it launch anything, may it go? |
//! | [`node_claim`] | does EC2 know whose an instance is, and do we know how it is paid for? |
//! | [`instance_status`] | which instances does EC2 itself find ill? |
//! | [`profiles`] | which instance profiles does nobody use? |
//! | [`events`] | which events are there only on EC2? |
//! | [`refresh`] | what does the region sell, at which price, in which zones? |

pub mod assembly;
mod chore;
pub mod events;
pub mod instance_status;
pub mod node_claim;
pub mod node_class;
mod objects;
pub mod profiles;
pub mod refresh;

use std::sync::Arc;

use controllers::{Ctx, error::CloudError, fleet::Fleet};
use provider::ProviderError;
use provider_aws::{Services, validation::Validator};

pub use chore::{Chore, Regularly};
pub use objects::Window;

/// All that a controller here can touch.
#[derive(Clone)]
pub struct AwsCtx {
    pub ctx: Ctx,
    pub services: Arc<Services>,
    pub validator: Arc<Validator>,
}

/// Adds every controller to the fleet, and lets the provider see what the fleet's index knows.
pub fn join(fleet: &mut Fleet, services: &Arc<Services>, window: &Window, versions: Arc<dyn refresh::ApiServer>) {
    let ctx = fleet.ctx().clone();
    window.open(ctx.index.clone(), ctx.clock.now());
    let aws = AwsCtx {
        ctx,
        services: services.clone(),
        validator: Arc::new(Validator::new(services.clone())),
    };
    fleet.add(node_class::NodeClasses::new(&aws));
    fleet.add(node_class::hash::Hashes::new(&aws));
    fleet.add(node_claim::tagging::Tagging::new(&aws));
    fleet.add(refresh::memory::Memory::new(&aws));
    if services.reserved_capacity {
        fleet.add(Regularly::new(&aws, node_claim::capacity_type::CapacityTypes));
        fleet.add(Regularly::new(&aws, node_claim::expiration::ReservationExpiry));
    }
    fleet.add(Regularly::new(&aws, instance_status::InstanceStatus::default()));
    if !services.options.isolated_vpc {
        fleet.add(Regularly::new(&aws, profiles::ProfileCollection::default()));
    }
    fleet.add(Regularly::new(&aws, refresh::InstanceTypes));
    fleet.add(Regularly::new(&aws, refresh::Pricing));
    fleet.add(Regularly::new(&aws, refresh::Parameters));
    fleet.add(Regularly::new(&aws, refresh::Versions(versions)));
    fleet.add(Regularly::new(&aws, refresh::Templates));
    fleet.add(Regularly::new(&aws, refresh::offerings::Offerings));
    if services.options.zonal_shift {
        fleet.add(Regularly::new(&aws, refresh::zonal_shift::ZonalShift::default()));
    }
}

/// A question to AWS that went wrong.
fn failed(action: &'static str, cause: impl std::error::Error + Send + Sync + 'static) -> CloudError {
    let cause = ProviderError::Unavailable { cause: cause.into() };
    CloudError { action, cause }
}
