//! Chance that can be repeated.
//!
//! A roll depends on the seed, on what it decides and on whom, never on how many rolls came before it. So one more
//! machine in a story does not change the fate of all the others.

use jiff::SignedDuration;
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::faults::Latency;

pub struct Dice(StdRng);

impl Dice {
    pub fn new(seed: u64, purpose: &str, subject: &str) -> Self {
        Self(StdRng::seed_from_u64(seed ^ fingerprint(&[purpose, subject])))
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.0.random::<f64>() < probability
    }

    /// From minus one to one.
    pub fn swing(&mut self) -> f64 {
        2.0 * self.0.random::<f64>() - 1.0
    }

    pub fn latency(&mut self, latency: Latency) -> SignedDuration {
        let share = self.0.random::<f64>();
        let width = (latency.at_most - latency.at_least).max(SignedDuration::ZERO);
        latency.at_least + width.mul_f64(share)
    }

    /// A life without memory: as likely to end in its next minute as in its first.
    pub fn lifetime(&mut self, mean: SignedDuration) -> SignedDuration {
        // Bounded so that no draw leaves the calendar; a thousand means is as good as forever.
        let share: f64 = -(1.0 - self.0.random::<f64>()).ln();
        mean.mul_f64(share.min(1_000.0))
    }
}

/// FNV-1a over the words: the same on every machine and in every release, which the standard hasher does not promise.
pub fn fingerprint(words: &[&str]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for word in words {
        for byte in word.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rolls_depend_on_seed_purpose_and_subject_only() {
        let roll = |seed, purpose, subject| Dice::new(seed, purpose, subject).0.random::<u64>();
        assert_eq!(roll(1, "boot", "a"), roll(1, "boot", "a"));
        assert_ne!(roll(1, "boot", "a"), roll(2, "boot", "a"));
        assert_ne!(roll(1, "boot", "a"), roll(1, "boot", "b"));
        assert_ne!(roll(1, "boot", "a"), roll(1, "end", "a"));
        assert_ne!(fingerprint(&["ab", "c"]), fingerprint(&["a", "bc"]));
    }

    #[test]
    fn latencies_stay_within_their_bounds() {
        let latency = Latency::between(SignedDuration::from_secs(2), SignedDuration::from_secs(5));
        for subject in 0..200 {
            let drawn = Dice::new(7, "boot", &subject.to_string()).latency(latency);
            assert!(latency.at_least <= drawn && drawn <= latency.at_most, "{drawn}");
        }
    }

    #[test]
    fn chance_is_about_as_likely_as_it_says() {
        let hits = (0..1_000)
            .filter(|n| Dice::new(3, "fail", &n.to_string()).chance(0.2))
            .count();
        assert!((120..280).contains(&hits), "{hits} of 1000 at 20 %");
        assert!(!Dice::new(3, "fail", "x").chance(0.0));
        assert!(Dice::new(3, "fail", "x").chance(1.0));
    }
}
