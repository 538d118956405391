//! Observe, decide, act: one folder per controller.
//!
//! A controller reads what it needs from the index once, decides without client or clock, and acts through the
//! [`writer`], which puts every answer into the index before anyone decides again. What runs them is [`runtime`]; what
//! they may touch is [`Ctx`]; [`fleet`] lists them all.
//!
//! | Folder | Question |
//! | --- | --- |
//! | [`provisioning`] | which node claims do pending pods need? |
//! | [`node_claim`] | how does a claim come to life, age and end? |
//! | [`node`] | how does a node empty itself and go? |
//! | [`node_pool`] | may a pool be used, and what does it use? |
//! | [`static_capacity`] | has a static pool the machines it asks for? |
//! | [`capacity_buffer`] | which room is kept free for pods to come? |
//! | [`disruption`] | which nodes are better gone? |
//! | [`interruption`] | which machines does the cloud take back? |
//! | [`catalog`] | what may a pool launch? |
//! | [`overlay`] | which corrections of the catalogs are in force? |

pub mod capacity_buffer;
pub mod catalog;
mod context;
pub mod disruption;
pub mod error;
pub mod events;
pub mod fleet;
pub mod interruption;
pub mod metrics;
pub mod node;
pub mod node_claim;
pub mod node_pool;
mod objects;
pub mod observer;
pub mod outbox;
pub mod overlay;
pub mod provisioning;
pub mod runtime;
pub mod static_capacity;
mod vitals;
pub mod writer;

pub use context::{Ctx, Features, Knobs};
