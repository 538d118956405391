//! What a cluster on AWS needs around the charts: the files of `deploy/` under the tools that people use them with.

mod account;
mod by_hand;
mod files;
mod image;
mod monitoring;
mod terraform;
