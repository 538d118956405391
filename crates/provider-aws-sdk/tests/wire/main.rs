//! Each call on the wire: what is asked, field by field, and how an answer is read.

mod environment;
mod fleet;
mod instances;
mod listings;
mod refusals;
mod script;
mod services;
mod template;
