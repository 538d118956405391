//! The word to stop, and the word to say more.

use operator::{logging::LevelHandle, settings::LogLevel};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

/// Cancelled by SIGTERM or SIGINT.
pub fn stop() -> std::io::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let told = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        told.cancel();
    });
    Ok(stop)
}

/// SIGUSR1 makes the log tell everything, SIGUSR2 makes it tell as much as the settings say. A restart to see more would
/// lose what is to be seen.
pub fn log_level(handle: LevelHandle, usual: LogLevel) -> std::io::Result<()> {
    let (mut more, mut back) = (
        signal(SignalKind::user_defined1())?,
        signal(SignalKind::user_defined2())?,
    );
    tokio::spawn(async move {
        loop {
            let level = tokio::select! {
                biased;
                _ = more.recv() => LogLevel::Debug,
                _ = back.recv() => usual,
            };
            handle.set(level);
            info!(level = ?level, "changed the log level");
        }
    });
    Ok(())
}
