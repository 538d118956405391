//! Claims and their instances: whose they are, and how they are paid for.

pub mod capacity_type;
pub mod expiration;
pub mod tagging;
