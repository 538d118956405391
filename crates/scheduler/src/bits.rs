//! Sets of small numbers as words of bits: the solver asks "which of these eight hundred instance types" a million times.

/// A set of numbers below a bound that grows on demand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bits(Vec<u64>);

pub(crate) const WORD: usize = u64::BITS as usize;

impl Bits {
    /// All numbers below `count`.
    pub fn first(count: usize) -> Self {
        let mut words = vec![u64::MAX; count / WORD];
        if !count.is_multiple_of(WORD) {
            words.push((1 << (count % WORD)) - 1);
        }
        Self(words)
    }

    /// Nothing yet, with room for numbers below `count`.
    pub fn with_room(count: usize) -> Self {
        Self(vec![0; count.div_ceil(WORD)])
    }

    pub fn insert(&mut self, number: usize) {
        let word = number / WORD;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % WORD);
    }

    pub fn remove(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / WORD) {
            *word &= !(1 << (number % WORD));
        }
    }

    pub fn contains(&self, number: usize) -> bool {
        self.word(number / WORD) & (1 << (number % WORD)) != 0
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The only member, if there is exactly one.
    pub fn single(&self) -> Option<usize> {
        let mut members = self.iter();
        let only = members.next()?;
        members.next().is_none().then_some(only)
    }

    /// Members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0
            .iter()
            .enumerate()
            .flat_map(|(index, word)| members(index, *word))
    }

    pub fn words(&self) -> &[u64] {
        &self.0
    }

    /// The word with the members from `64 * index` on; zero beyond the end.
    pub fn word(&self, index: usize) -> u64 {
        self.0.get(index).copied().unwrap_or(0)
    }

    /// Removes those of one word.
    pub fn subtract_word(&mut self, index: usize, word: u64) {
        if word != 0 {
            self.0[index] &= !word;
        }
    }

    pub fn intersect_with(&mut self, other: &Bits) {
        for (index, word) in self.0.iter_mut().enumerate() {
            *word &= other.word(index);
        }
    }

    pub fn intersect_with_words(&mut self, other: &[u64]) {
        for (word, other) in self.0.iter_mut().zip(other) {
            *word &= other;
        }
    }

    pub fn unite_with(&mut self, other: &Bits) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    pub fn subtract(&mut self, other: &Bits) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
    }

    #[must_use]
    pub fn and(&self, other: &Bits) -> Bits {
        let mut both = self.clone();
        both.intersect_with(other);
        both
    }
}

/// The members that one word stands for.
pub(crate) fn members(index: usize, word: u64) -> impl Iterator<Item = usize> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
        rest &= rest - 1;
        Some(index * WORD + bit)
    })
}

impl FromIterator<usize> for Bits {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        let mut bits = Bits::default();
        for number in numbers {
            bits.insert(number);
        }
        bits
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::Bits;

    fn numbers() -> impl Strategy<Value = BTreeSet<usize>> {
        prop::collection::btree_set(0..300usize, 0..40)
    }

    proptest! {
        #[test]
        fn bits_are_sets(a in numbers(), b in numbers()) {
            let (x, y): (Bits, Bits) = (a.iter().copied().collect(), b.iter().copied().collect());
            prop_assert_eq!(x.iter().collect::<BTreeSet<_>>(), a.clone());
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x.and(&y).iter().collect::<BTreeSet<_>>(), &a & &b);
            let mut union = x.clone();
            union.unite_with(&y);
            prop_assert_eq!(union.iter().collect::<BTreeSet<_>>(), &a | &b);
            let mut rest = x.clone();
            rest.subtract(&y);
            prop_assert_eq!(rest.iter().collect::<BTreeSet<_>>(), &a - &b);
            prop_assert_eq!(x.single(), (a.len() == 1).then(|| *a.first().unwrap()));
        }
    }
}
