//! Rules that the API server does not check. A violation never rejects a write: it becomes a condition, and the object
//! stays unready.
//!
//! Every function lists all violations, each with the field it is about; no violations means valid.

mod ec2_node_class;
mod kubelet;
mod names;
mod node_overlay;
mod node_pool;
mod requirement;

pub use ec2_node_class::restricted_tags;
pub use kubelet::kubelet;
pub use names::qualified_name;
pub use node_overlay::node_overlay;
pub use node_pool::node_pool;
pub use requirement::{Demand, requirement};
