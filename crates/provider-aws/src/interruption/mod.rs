//! What AWS announces about instances: messages of the queue, and the status that is asked for.

mod message;
mod status;

pub use message::{Announcement, Unreadable, read};
pub use status::{StatusCategory, Unhealthy, queries as status_queries, unhealthy};
