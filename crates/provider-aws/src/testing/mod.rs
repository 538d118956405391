//! What the tests of this crate share.

pub mod fake;
pub mod samples;
