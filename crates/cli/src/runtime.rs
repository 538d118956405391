//! What commands run on that ask a cluster or a cloud and wait for the answers: one thread.

use anyhow::Context as _;

use crate::exit::Failure;

pub fn wait_for<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("no runtime").map_err(Failure::No)?;
    runtime.block_on(work)
}
