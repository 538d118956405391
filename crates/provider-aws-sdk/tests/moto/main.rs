//! The ports against moto, an emulator of AWS that knows nothing of us: what it takes for a request, AWS is likely to.
//!
//! Reservations, placement groups, the price list and zonal shifts are not to be had there.

mod cluster;
mod discovery;
mod launch;
mod profiles;
mod region;
