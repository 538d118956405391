//! One index of the cluster, fed by watches, publishing snapshots.
//!
//! Everything that is known about the cluster goes in through one door and comes out as an immutable [`View`]: the
//! [`Snapshot`](model::Snapshot) that decisions are made on, and the raw objects that writes start from.
//!
//! ```text
//!  list, watch ─► Feed ─┐                      ┌─► View       (what is known now; readers hold no lock)
//!                       ├─► Index::{apply, … } ┤
//!  own writes ──────────┘                      └─► Event      (what changed, in order, to each subscriber)
//! ```
//!
//! What the index holds follows from the newest version of each object alone, so events may come late, twice or out of
//! order. Our own writes enter with the server's answer, before the watch brings them, so that a decision never starts
//! on a cluster that lacks what we have just done to it.
//!
//! - [`Index`]: the door and the readers' side.
//! - [`Feed`]: lists and watches one kind into an index, for as long as it is polled.
//! - [`table`] and [`ledger`]: which version of an object counts.
//! - [`machines`]: how claims and nodes become machines.
//! - [`kinds`], [`storage`], [`devices`], [`workloads`], [`optional`] and [`legacy`]: what is kept of each kind, and what follows from a
//!   change of it.

mod daemons;
mod devices;
mod event;
mod feed;
mod index;
mod kinds;
mod ledger;
mod legacy;
mod machines;
mod marks;
mod node_class;
mod notes;
mod optional;
mod served;
mod shapes;
mod storage;
mod table;
mod view;
mod workloads;

pub use event::{Change, Event};
pub use feed::{Feed, FeedPace, retry_after};
pub use index::{Changes, Index};
pub use kinds::{Indexed, Kind};
pub use node_class::NodeClass;
pub use notes::PodNotes;
pub use served::Served;
pub use table::{ObjectKey, Table};
pub use view::View;
