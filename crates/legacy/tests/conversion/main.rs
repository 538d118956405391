//! Conversion from outside: documents in, documents out. The vectors of the specification are named LE18.n.

mod admission;
mod beta;
mod charts;
mod early;
mod fixtures;
mod launch_templates;
mod properties;
mod provisioners;
mod settings;
mod state;
mod templates;
