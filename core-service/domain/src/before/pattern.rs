//! Patterns of text, which the grammar is written in.

/// A piece of the grammar.
pub(super) enum Pattern {
    /// Between `min` and `max` bytes of a set; [`Pattern::MANY`] is no limit.
    Bytes { of: ByteSet, min: u8, max: u8 },
    /// A number written with `min` to `max` digits, whose value lies in `from..=to`.
    Number {
        min: u8,
        max: u8,
        from: u16,
        to: u16,
    },
    /// A text, capital or not.
    Text(&'static str),
    /// A text, letter by letter.
    Exact(&'static str),
    /// One of the words of a table, capital or not.
    Word(&'static [&'static [&'static str]]),
    /// One after the other.
    Seq(&'static [Pattern]),
    /// Any of these.
    Any(&'static [Pattern]),
    /// Once or not at all.
    Maybe(&'static Pattern),
    /// Once or more; not of what may be nothing.
    Repeat(&'static Pattern),
}

/// A set of bytes. Zero stands for the end of the text, which may be matched once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ByteSet([u128; 2]);

impl Pattern {
    /// As many bytes as there are.
    pub(super) const MANY: u8 = u8::MAX;
}

impl ByteSet {
    pub(super) const EMPTY: Self = Self([0; 2]);

    pub(super) const fn of(bytes: &[u8]) -> Self {
        let mut set = Self::EMPTY;
        let mut i = 0;
        while i < bytes.len() {
            set = set.and(Self::range(bytes[i], bytes[i]));
            i += 1;
        }
        set
    }

    pub(super) const fn range(from: u8, to: u8) -> Self {
        let mut halves = [0; 2];
        let mut byte = from;
        while byte <= to {
            halves[byte as usize / 128] |= 1 << (byte % 128);
            byte += 1;
        }
        Self(halves)
    }

    pub(super) const fn and(self, other: Self) -> Self {
        let ([low, high], [other_low, other_high]) = (self.0, other.0);
        Self([low | other_low, high | other_high])
    }

    pub(super) const fn contains(self, byte: u8) -> bool {
        self.0[byte as usize / 128] >> (byte % 128) & 1 == 1
    }
}
