//! Settings parsed once, wiring of the controllers, leader lease, health and metrics.

pub mod endpoints;
pub mod lease;
pub mod logging;
pub mod settings;
