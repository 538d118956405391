//! Names of claims: chosen by us, so that a creation whose answer is lost can be repeated and found out.

use rand::Rng;

/// Without vowels and look-alikes, as the API server's own suffixes.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;
/// A name becomes a label value in places.
const LONGEST: usize = 63;

pub fn generate_name(pool: &str) -> String {
    let longest_prefix = LONGEST - SUFFIX - 1;
    let cut = pool.len().min(longest_prefix);
    format!("{}-", pool[..cut].trim_end_matches(['-', '.']))
}

/// A name that nobody has yet, as far as we know.
pub fn fresh(generate_name: &str, random: &mut impl Rng, taken: impl Fn(&str) -> bool) -> String {
    loop {
        let suffix: String = (0..SUFFIX)
            .map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())]))
            .collect();
        let name = format!("{generate_name}{suffix}");
        if !taken(&name) {
            return name;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn names_are_reproducible_fresh_and_short() {
        let mut random = StdRng::seed_from_u64(1);
        let first = fresh("general-", &mut random, |_| false);
        let mut again = StdRng::seed_from_u64(1);
        let second = fresh("general-", &mut again, |name| name == first);
        assert_ne!(first, second);
        assert_eq!(first.len(), "general-".len() + SUFFIX);
        assert_eq!(fresh("general-", &mut StdRng::seed_from_u64(1), |_| false), first);
        assert_eq!(generate_name(&"x".repeat(200)).len() + SUFFIX, LONGEST);
        assert_eq!(generate_name("general"), "general-");
    }
}
