//! Chance, from a seed and a name.
//!
//! A throw depends on the seed and on what it is thrown for, not on how many throws came before it. So a change of the
//! order in which components look at objects does not change the delays of all objects after the first.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dice {
    seed: u64,
}

impl Dice {
    pub fn seeded(seed: u64) -> Self {
        Self { seed }
    }

    /// Dice for one part of the world, independent of those for the others.
    pub fn of(self, part: &str) -> Dice {
        Dice {
            seed: self.throw(&[part]),
        }
    }

    /// Dice for one of many.
    pub fn nth(self, index: u64) -> Dice {
        Dice {
            seed: mix(self.seed ^ mix(index)),
        }
    }

    /// Any number, always the same for the same words.
    pub fn throw(self, words: &[&str]) -> u64 {
        // FNV-1a over the words with a separator, then a finaliser that spreads the bits.
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ self.seed;
        for word in words {
            for byte in word.bytes().chain([0xff]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        mix(hash)
    }

    /// From zero up to `sides`, without it.
    pub fn below(self, sides: u64, words: &[&str]) -> u64 {
        self.throw(words) % sides.max(1)
    }

    /// Happens in `times` of a hundred cases.
    pub fn percent(self, times: u64, words: &[&str]) -> bool {
        self.below(100, words) < times
    }

    /// Evenly between the two, to the millisecond.
    pub fn between(self, least: Duration, most: Duration, words: &[&str]) -> Duration {
        let span = u64::try_from(most.saturating_sub(least).as_millis()).unwrap_or(u64::MAX);
        least + Duration::from_millis(self.below(span.saturating_add(1), words))
    }
}

/// The finaliser of SplitMix64.
fn mix(mut value: u64) -> u64 {
    value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_throw_depends_on_seed_and_words_only() {
        let dice = Dice::seeded(7);
        assert_eq!(dice.throw(&["a", "b"]), Dice::seeded(7).throw(&["a", "b"]));
        assert_ne!(dice.throw(&["a", "b"]), dice.throw(&["ab"]));
        assert_ne!(dice.throw(&["a"]), Dice::seeded(8).throw(&["a"]));
        assert_ne!(dice.of("x").throw(&["a"]), dice.of("y").throw(&["a"]));
    }

    #[test]
    fn throws_spread_over_their_range() {
        let dice = Dice::seeded(1);
        let (least, most) = (Duration::from_secs(1), Duration::from_secs(2));
        let throws: Vec<Duration> = (0..1000).map(|i| dice.nth(i).between(least, most, &[])).collect();
        assert!(throws.iter().all(|throw| (least..=most).contains(throw)));
        let low = throws.iter().filter(|throw| throw.as_millis() < 1500).count();
        assert!((400..600).contains(&low), "{low} of 1000 in the lower half");
    }
}
