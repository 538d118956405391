//! Names and uids from a seed: two servers with the same seed and the same requests give the same ones.

use serde::{Deserialize, Serialize};

/// SplitMix64: sixty-four bits of state are plenty for names, and every seed is a good one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ids {
    state: u64,
}

/// Without vowels and look-alikes, as the real server has it, so that no suffix spells a word.
const SUFFIX_CHARS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LEN: usize = 5;
const MAX_GENERATED_NAME: usize = 63;

impl Ids {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A version 4 uuid.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            (low >> 48) & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff,
        )
    }

    /// `base` with a random suffix, shortened so that the whole is a label.
    pub(crate) fn generated_name(&mut self, base: &str) -> String {
        let keep = base.len().min(MAX_GENERATED_NAME - SUFFIX_LEN);
        let mut name = base.get(..keep).unwrap_or(base).to_owned();
        let mut random = self.next();
        for _ in 0..SUFFIX_LEN {
            let count = SUFFIX_CHARS.len() as u64;
            name.push(char::from(SUFFIX_CHARS[(random % count) as usize]));
            random /= count;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself_and_another_differs() {
        let (mut a, mut b, mut c) = (Ids::new(7), Ids::new(7), Ids::new(8));
        let uid = a.uid();
        assert_eq!(uid, b.uid());
        assert_ne!(uid, c.uid());
        assert_eq!((uid.len(), &uid[14..15]), (36, "4"));
        assert_eq!(a.generated_name("web-"), b.generated_name("web-"));
    }

    #[test]
    fn a_generated_name_fits_a_label() {
        let name = Ids::new(1).generated_name(&"x".repeat(80));
        assert_eq!(name.len(), MAX_GENERATED_NAME);
    }
}
