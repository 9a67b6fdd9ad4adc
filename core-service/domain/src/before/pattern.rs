//! Text patterns: the notation of the grammar.

pub(super) enum Pattern {
    /// From `min` to `max` bytes of a set; [`Pattern::UNLIMITED`] means no limit.
    Bytes { set: ByteSet, min: u8, max: u8 },
    /// A number of `min` to `max` digits with a value in `from..=to`.
    Number {
        min: u8,
        max: u8,
        from: u16,
        to: u16,
    },
    /// A text; ASCII case is ignored.
    AnyCase(&'static str),
    /// A text; case matters.
    Exact(&'static str),
    /// One of the words of a table; ASCII case is ignored.
    Word(&'static [&'static [&'static str]]),
    /// All of these, in this order.
    Seq(&'static [Pattern]),
    /// One of these.
    Any(&'static [Pattern]),
    /// This pattern or nothing.
    Optional(&'static Pattern),
    /// Once or more. The inner pattern must not match the empty text.
    Repeat(&'static Pattern),
}

/// A set of bytes. Zero represents the end of the text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ByteSet([u128; 2]);

impl Pattern {
    /// No limit to the number of bytes.
    pub(super) const UNLIMITED: u8 = u8::MAX;
}

impl ByteSet {
    pub(super) const EMPTY: Self = Self([0; 2]);

    pub(super) const fn of(bytes: &[u8]) -> Self {
        let mut set = Self::EMPTY;
        let mut i = 0;
        while i < bytes.len() {
            set = set.union(Self::range(bytes[i], bytes[i]));
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

    pub(super) const fn union(self, other: Self) -> Self {
        let ([low, high], [other_low, other_high]) = (self.0, other.0);
        Self([low | other_low, high | other_high])
    }

    pub(super) const fn contains(self, byte: u8) -> bool {
        self.0[byte as usize / 128] >> (byte % 128) & 1 == 1
    }
}
