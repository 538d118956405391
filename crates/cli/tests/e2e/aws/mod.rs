//! The AWS provider's flows, against `aws-fake` in this process: its instances boot, read their user data and join.

mod getting_started;
mod region;
mod spot;
