//! Identifiers that look like AWS's and are the same in every run.

/// Hands out identifiers, none twice.
#[derive(Debug, Default)]
pub struct Ids(u64);

impl Ids {
    /// `i-0…` with seventeen digits, as EC2 has them.
    pub fn ec2(&mut self, kind: &str) -> String {
        format!("{kind}-0{:016x}", self.number())
    }

    /// `AIPA…` with twenty-one letters, as IAM has them.
    pub fn iam(&mut self, kind: &str) -> String {
        let number = self.number();
        let letter = |place: u32| char::from(b'A' + u8::try_from((number >> (place * 3)) & 0x0f).unwrap_or(0));
        format!("{kind}{}", (0..17).map(letter).collect::<String>())
    }

    pub fn uuid(&mut self) -> String {
        let (high, low) = (self.number(), self.number());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            low >> 52,
            low & 0xffff_ffff_ffff
        )
    }

    fn number(&mut self) -> u64 {
        self.0 += 1;
        scattered(self.0)
    }
}

/// An identifier that belongs to a name.
pub fn named(kind: &str, name: &str) -> String {
    format!("{kind}-0{:016x}", digest(name))
}

/// A number that is always the same for the same text and has nothing to do with that of a similar one.
pub fn digest(text: &str) -> u64 {
    // FNV-1a, then scattered, because its low bits alone follow the last letter.
    let fold = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    scattered(text.bytes().fold(0xcbf2_9ce4_8422_2325, fold))
}

/// The last steps of SplitMix64.
fn scattered(number: u64) -> u64 {
    let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn identifiers_have_their_form_and_do_not_repeat() {
        let mut ids = Ids::default();
        let made: BTreeSet<String> = (0..1000).map(|_| ids.ec2("i")).collect();
        assert_eq!(made.len(), 1000);
        assert!(made.iter().all(|id| id.len() == 19 && id.starts_with("i-0")));
        assert_eq!(ids.iam("AIPA").len(), 21);
        assert_eq!(ids.uuid().len(), 36);
        assert_eq!(named("ami", "a"), named("ami", "a"));
        assert_ne!(named("ami", "a"), named("ami", "b"));
    }
}
