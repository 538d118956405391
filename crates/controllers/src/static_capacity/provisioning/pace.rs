//! How soon claims are created again that came to nothing.
//!
//! A claim that the cloud has no machine for is deleted at once, and its going is a reason to create another. Without a
//! pause the two would chase each other for as long as there is no capacity.

use std::{collections::BTreeMap, time::Duration};

use model::PoolName;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::runtime::Pace;

const PAUSE: Pace = Pace::new(Duration::from_secs(1), Duration::from_secs(60));
/// Claims that went later than this had their chance: the pause begins anew.
const LAUNCH_TIME: Duration = Duration::from_secs(5 * 60);

/// What was created last, by pool.
#[derive(Default)]
pub struct Attempts {
    last: Mutex<BTreeMap<PoolName, Attempt>>,
}

struct Attempt {
    at: Instant,
    claims: Vec<String>,
    /// How many attempts in a row left no claim behind.
    in_vain: u32,
}

impl Attempts {
    /// How long the next attempt has to wait.
    pub fn pause(&self, pool: &PoolName, exists: impl Fn(&str) -> bool, now: Instant) -> Option<Duration> {
        let last = self.last.lock();
        let last = last.get(pool)?;
        let in_vain = last.in_vain_by(&exists, now);
        let due = last.at + PAUSE.after(in_vain.checked_sub(1)?);
        (due > now).then(|| due - now)
    }

    /// An attempt was made.
    pub fn note(&self, pool: &PoolName, claims: Vec<String>, exists: impl Fn(&str) -> bool, now: Instant) {
        let mut all = self.last.lock();
        let in_vain = all.get(pool).map_or(0, |last| last.in_vain_by(&exists, now));
        let attempt = Attempt {
            at: now,
            claims,
            in_vain,
        };
        all.insert(pool.clone(), attempt);
    }
}

impl Attempt {
    fn in_vain_by(&self, exists: &impl Fn(&str) -> bool, now: Instant) -> u32 {
        let had_time = now.saturating_duration_since(self.at) > LAUNCH_TIME;
        if had_time || self.claims.iter().any(|claim| exists(claim)) {
            0
        } else {
            self.in_vain + 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_that_come_to_nothing_become_rarer() {
        let attempts = Attempts::default();
        let pool = PoolName::from("p");
        let start = Instant::now();
        let secs = |pause: Option<Duration>| pause.map(|pause| pause.as_secs());
        let gone = |_: &str| false;
        assert_eq!(attempts.pause(&pool, gone, start), None, "nothing was tried yet");
        attempts.note(&pool, vec!["a".to_owned()], gone, start);
        assert_eq!(secs(attempts.pause(&pool, gone, start)), Some(1));
        let later = start + Duration::from_secs(1);
        assert_eq!(attempts.pause(&pool, gone, later), None);
        attempts.note(&pool, vec!["b".to_owned()], gone, later);
        assert_eq!(secs(attempts.pause(&pool, gone, later)), Some(2));
        assert_eq!(
            attempts.pause(&pool, |claim| claim == "b", later),
            None,
            "one of them lives"
        );
        assert_eq!(attempts.pause(&pool, gone, later + Duration::from_secs(600)), None);
    }
}
