//! Settings parsed once, wiring of the controllers, leader lease, health and metrics.
