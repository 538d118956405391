//! The controllers that keep v1 objects in step with those of the time of Provisioners, so that every other controller knows
//! v1 alone.
//!
//! What a source becomes is decided by crate `legacy`, for all sources together: kubelet settings of many pools meet in one
//! class. Here it is decided what that means for the objects that are there.
//!
//! ```text
//!   Provisioners, node templates, settings ──► book (legacy::convert) ──► target::fate ──► server-side apply
//!                        ▲                                                                        │
//!                        └──────────── status: Converted, Active, resources, subnets … ◄──────────┘
//! ```
//!
//! | Module | Question |
//! | --- | --- |
//! | [`book`] | what do all sources come to? |
//! | [`target`] | what is to be done about one v1 object? |
//! | [`follow`] | how does a source get its objects, and what is it told? |
//! | [`provisioner`], [`node_template`] | the two kinds of source |
//! | [`machine`] | which instances that run already become claims? |

pub mod book;
mod clouds;
mod follow;
pub mod machine;
pub mod node_template;
mod notices;
pub mod provisioner;
mod source;
mod status;
pub mod target;

use controllers::{Ctx, fleet::Fleet};

pub use source::Source;

pub use legacy::settings::CONFIG_MAP as GLOBAL_SETTINGS;

/// As which applied fields are owned.
pub const FIELD_MANAGER: &str = "karpenter-legacy";

/// What has to be known of the place besides what the index holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Selectors that a source leaves out mean what is tagged with this name.
    pub cluster_name: Option<String>,
}

/// All that a controller here can touch.
#[derive(Clone)]
pub struct LegacyCtx {
    pub ctx: Ctx,
    pub place: Place,
}

impl LegacyCtx {
    /// For the controller of this name.
    fn of(&self, controller: &'static str) -> Self {
        Self {
            ctx: self.ctx.of(controller),
            place: self.place.clone(),
        }
    }
}

/// Adds every controller to the fleet, and makes the index heed what pods said in that time.
pub fn join(fleet: &mut Fleet, place: Place) {
    let ctx = fleet.ctx().clone();
    ctx.index.heed_old_words();
    let legacy = LegacyCtx { ctx, place };
    fleet.add(node_template::NodeTemplates::new(&legacy));
    fleet.add(provisioner::Provisioners::new(&legacy));
    fleet.add(machine::Machines::new(&legacy));
}
