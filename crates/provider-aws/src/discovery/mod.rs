//! What the selectors of a class find: images, subnets, security groups, reservations, placement groups, profiles.
//!
//! Each finder asks AWS through its port, remembers the answer for a while, and leaves decisions to pure functions beside
//! it. Answers are remembered per class and generation, so that an edit is seen at once.

mod alias;
mod image;
mod parameter;
mod place;
mod placement_group;
mod profile;
mod reservation;
mod subnet;
mod version;
mod zonal_shift;

use api::aws::EC2NodeClass;

pub use alias::{Alias, UnsupportedAlias};
pub use image::{ImageError, Images};
pub use parameter::Parameters;
pub use place::{SecurityGroups, Subnets};
pub use placement_group::{PlacementGroups, Resolved};
pub use profile::{ProfileError, Profiles, legacy_name, path as profile_path};
pub use reservation::{Reservations, UnusableReservation, to_status as reservation_status};
pub use subnet::{Addresses, Deduction};
pub use version::{MalformedVersion, Version};
pub use zonal_shift::ZonalShifts;

/// Under which a class's findings are remembered.
pub(crate) type ClassKey = (String, i64);

pub(crate) fn class_key(class: &EC2NodeClass) -> ClassKey {
    let metadata = &class.metadata;
    (
        metadata.uid.clone().unwrap_or_default(),
        metadata.generation.unwrap_or(0),
    )
}
