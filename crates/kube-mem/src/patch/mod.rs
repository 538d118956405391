//! The four ways to change part of an object: JSON patch, merge patch, strategic merge patch, server-side apply.
//!
//! All are pure: they take the stored object and give the new one. `managed_fields` records who did it.

mod apply;
mod go_text;
mod json;
mod merge;
mod strategic;
mod typed;

pub use apply::{ApplyError, ApplyOptions, Conflict, apply};
pub use json::json;
pub use merge::merge;
pub use strategic::strategic;

pub(crate) use go_text::go_text;

/// Why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch is not of the right form: 400 BadRequest.
    #[error("{0}")]
    Malformed(String),
    /// The patch is well formed but does not fit the object: 422 Invalid.
    #[error("{0}")]
    Unprocessable(String),
    /// The server cannot make sense of the patch: 500 without a reason.
    #[error("{0}")]
    Internal(String),
}
