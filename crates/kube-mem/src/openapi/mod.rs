//! The server's description of itself: OpenAPI v3 per group and version, and as much of v2 as kubectl asks for.

mod definitions;

use crate::registry::Registry;

pub(crate) use definitions::{definition, name_of};

/// A document with its media type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

/// The document at `path` (`/openapi/v2`, `/openapi/v3`, `/openapi/v3/apis/apps/v1`), or nothing if there is none.
pub fn answer(_registry: &Registry, _path: &str, _accept: &str) -> Option<Answer> {
    None
}
