//! Keeps static pools at the size that they ask for.
//!
//! A pool with `replicas` has that many machines, whether pods need them or not. [`provisioning`] creates what is
//! missing and [`deprovisioning`] deletes what is too much; drift of static machines is a disruption like any other and
//! borrows [`Slots`] while it exchanges one.
//!
//! Who counts is read off the objects by [`Census`]; only reservations live in memory, and only for as long as somebody
//! is between deciding to create a claim and having created it.

mod census;
pub mod deprovisioning;
pub mod provisioning;
mod slots;

pub use census::Census;
pub use slots::{Slot, Slots};
