//! Places pods: a snapshot and a round in, a plan out.

mod plan;
mod refusal;
mod round;

pub use plan::{Choice, Launch, Placement, Plan};
pub use refusal::{Ineligible, Lacking, PoolRefusal, Refusal, Unfit, UnsupportedRule};
pub use round::{MinValuesPolicy, Options, PreferencePolicy, Round};
