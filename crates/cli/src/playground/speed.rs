//! How fast the playground's time runs.
//!
//! Everything simulated waits on tokio's timer, so speed is a matter of moving that timer:
//!
//! ```text
//! real      the timer is the machine's
//! 10        the timer is paused; a driver moves it ten seconds for each second that passes
//! max       the timer is paused; tokio moves it to the next deadline whenever nothing is left to do
//! ```

use std::{str::FromStr, time::Duration};

use tokio::runtime::{Builder, Runtime};

/// How often the driver moves the timer. Short enough that nobody sees the steps.
const STEP: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    Times(u32),
    Max,
}

#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a speed: use a whole number from 1 to 10000, or max")]
pub struct UnknownSpeed(String);

impl FromStr for Speed {
    type Err = UnknownSpeed;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "max" {
            return Ok(Speed::Max);
        }
        match text.parse() {
            Ok(times @ 1..=10_000) => Ok(Speed::Times(times)),
            _ => Err(UnknownSpeed(text.to_owned())),
        }
    }
}

impl Speed {
    /// A runtime on which time can run at this speed.
    pub fn runtime(self) -> std::io::Result<Runtime> {
        Builder::new_current_thread()
            .enable_all()
            .start_paused(self != Speed::Times(1))
            .build()
    }

    /// Keeps time running at this speed; never returns.
    pub async fn drive(self) {
        let Speed::Times(times @ 2..) = self else {
            return std::future::pending().await;
        };
        loop {
            // A blocking task keeps tokio from moving the paused timer on its own.
            let slept = tokio::task::spawn_blocking(|| std::thread::sleep(STEP)).await;
            if slept.is_err() {
                return;
            }
            tokio::time::advance(STEP * times).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_number_or_max() {
        assert_eq!("max".parse::<Speed>().unwrap(), Speed::Max);
        assert_eq!("10".parse::<Speed>().unwrap(), Speed::Times(10));
        for bad in ["0", "-1", "fast", "10001"] {
            bad.parse::<Speed>().expect_err(bad);
        }
    }

    #[test]
    fn at_full_speed_an_hour_takes_no_time() {
        let runtime = Speed::Max.runtime().unwrap();
        runtime.block_on(async {
            let start = tokio::time::Instant::now();
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert!(start.elapsed() >= Duration::from_secs(3600));
        });
    }
}
