//! A pseudorandom number generator with reproducible results.

/// The `SplitMix64` algorithm.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: i64) -> i64 {
        let limit = u64::try_from(limit).expect("limits are positive");
        i64::try_from(self.next() % limit).expect("the result is below the limit")
    }

    pub(crate) fn between(&mut self, from: i64, to: i64) -> i64 {
        from + self.below(to - from + 1)
    }

    pub(crate) fn chance(&mut self, percent: i64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[usize::try_from(self.below(i64::try_from(words.len()).expect("tables are short")))
            .expect("the index is not negative")]
    }
}
