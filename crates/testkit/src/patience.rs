//! Waiting for real components on real time.

use std::{fmt::Debug, time::Duration};

use tokio::time::Instant;

/// Long enough for a busy machine with two cores; a test that gets there has failed.
const PATIENCE: Duration = Duration::from_secs(180);

/// Asks until the answer is yes. Real components on real time leave no other way than to look again.
///
/// # Panics
///
/// When the answer stays no for three minutes.
pub async fn eventually<T, E: Debug>(what: &str, mut ask: impl AsyncFnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = match ask().await {
            Ok(answer) => return answer,
            Err(seen) => seen,
        };
        assert!(
            Instant::now() < deadline,
            "waited in vain until {what}; last seen: {seen:?}"
        );
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}
