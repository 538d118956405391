//! A simulated cloud: a drop-in for the KWOK provider with latency and faults.

pub mod catalog;

pub use catalog::{Catalog, CatalogError, SpotPrices};
