//! Patterns of text, matched all ways at once: a pattern turns the places where it may begin into
//! the places where it may end. Linear in the text, so no input is a slow one.

/// Places in a text, as a set: bit n stands for the place before byte n.
pub(super) type Places = u128;

/// A piece of the grammar.
pub(super) enum Pattern {
    /// Between `min` and `max` bytes of a set.
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
    /// Once or more.
    Repeat(&'static Pattern),
}

/// A set of ASCII bytes. Zero stands for the end of the text, which may be matched once.
#[derive(Clone, Copy)]
pub(super) struct ByteSet(u128);

impl ByteSet {
    const EMPTY: Self = Self(0);

    /// With the first letter of a word, small and capital. A letter beyond ASCII is left out: no
    /// word of the grammar that begins a rule has one.
    const fn with_initial(self, word: &str) -> Self {
        let initial = word.as_bytes()[0];
        if initial.is_ascii() {
            self.and(Self::of(&[
                initial.to_ascii_lowercase(),
                initial.to_ascii_uppercase(),
            ]))
        } else {
            self
        }
    }

    pub(super) const fn of(bytes: &[u8]) -> Self {
        let mut set = 0;
        let mut i = 0;
        while i < bytes.len() {
            set |= 1 << bytes[i];
            i += 1;
        }
        Self(set)
    }

    pub(super) const fn range(from: u8, to: u8) -> Self {
        let mut set = 0;
        let mut byte = from;
        while byte <= to {
            set |= 1 << byte;
            byte += 1;
        }
        Self(set)
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn contains(self, byte: u8) -> bool {
        byte < 128 && self.0 >> byte & 1 == 1
    }
}

impl Pattern {
    /// What the first byte of a match can be, and whether there may be none.
    pub(super) const fn begins(&self) -> (ByteSet, bool) {
        match self {
            Self::Bytes { of, min, .. } => (*of, *min == 0),
            Self::Number { .. } => (ByteSet::range(b'0', b'9'), false),
            Self::Text(literal) | Self::Exact(literal) => {
                (ByteSet::EMPTY.with_initial(literal), false)
            }
            Self::Word(table) => {
                let mut set = ByteSet::EMPTY;
                let mut value = 0;
                while value < table.len() {
                    let mut name = 0;
                    while name < table[value].len() {
                        set = set.with_initial(table[value][name]);
                        name += 1;
                    }
                    value += 1;
                }
                (set, false)
            }
            Self::Seq(parts) => {
                let mut set = ByteSet::EMPTY;
                let mut part = 0;
                while part < parts.len() {
                    let (begins, may_be_empty) = parts[part].begins();
                    set = set.and(begins);
                    if !may_be_empty {
                        return (set, false);
                    }
                    part += 1;
                }
                (set, true)
            }
            Self::Any(choices) => {
                let (mut set, mut may_be_empty) = (ByteSet::EMPTY, false);
                let mut choice = 0;
                while choice < choices.len() {
                    let (begins, empty) = choices[choice].begins();
                    set = set.and(begins);
                    may_be_empty |= empty;
                    choice += 1;
                }
                (set, may_be_empty)
            }
            Self::Maybe(part) => (part.begins().0, true),
            Self::Repeat(part) => part.begins(),
        }
    }

    /// How many bytes of `text` the longest match takes, from its beginning. One more than there
    /// are if the end of the text is part of the match.
    pub(super) fn longest(&self, text: &[u8]) -> Option<usize> {
        let ends = self.ends(text, 1);
        (ends != 0).then(|| 127 - ends.leading_zeros() as usize)
    }

    fn ends(&self, text: &[u8], begins: Places) -> Places {
        match self {
            Self::Bytes { of, min, max } => bytes(text, begins, *of, (*min, *max)),
            Self::Seq(parts) => {
                let mut places = begins;
                for part in *parts {
                    if places == 0 {
                        break;
                    }
                    places = part.ends(text, places);
                }
                places
            }
            Self::Any(choices) => choices
                .iter()
                .fold(0, |ends, choice| ends | choice.ends(text, begins)),
            Self::Maybe(part) => begins | part.ends(text, begins),
            Self::Repeat(part) => {
                let mut ends = 0;
                let mut fresh = begins;
                while fresh != 0 {
                    fresh = part.ends(text, fresh) & !ends;
                    ends |= fresh;
                }
                ends
            }
            Self::Number { .. } => each(begins, |begin| self.number(text, begin)),
            Self::Text(literal) => each(begins, |begin| {
                let end = begin + literal.len();
                let found = text.get(begin..end);
                if found.is_some_and(|found| found.eq_ignore_ascii_case(literal.as_bytes())) {
                    place(end)
                } else {
                    0
                }
            }),
            Self::Exact(literal) => each(begins, |begin| {
                let end = begin + literal.len();
                if text.get(begin..end) == Some(literal.as_bytes()) {
                    place(end)
                } else {
                    0
                }
            }),
            Self::Word(table) => each(begins, |begin| word(text, begin, table)),
        }
    }

    fn number(&self, text: &[u8], begin: usize) -> Places {
        let Self::Number { min, max, from, to } = self else {
            return 0;
        };
        let mut value = 0;
        let mut ends = 0;
        for width in 1..=*max {
            let Some(digit) = text
                .get(begin + usize::from(width) - 1)
                .filter(|byte| byte.is_ascii_digit())
            else {
                break;
            };
            value = value * 10 + u16::from(digit - b'0');
            if width >= *min && (*from..=*to).contains(&value) {
                ends |= place(begin + usize::from(width));
            }
        }
        ends
    }
}

fn bytes(text: &[u8], begins: Places, of: ByteSet, (min, max): (u8, u8)) -> Places {
    let mut ends = if min == 0 { begins } else { 0 };
    let mut places = begins;
    for count in 1..=max {
        places = each(places, |begin| {
            let byte = if begin == text.len() {
                Some(&0)
            } else {
                text.get(begin)
            };
            if byte.is_some_and(|byte| of.contains(*byte)) {
                place(begin + 1)
            } else {
                0
            }
        });
        if places == 0 {
            break;
        }
        if count >= min {
            ends |= places;
        }
    }
    ends
}

fn word(text: &[u8], begin: usize, table: &[&[&str]]) -> Places {
    let Some(rest) = text.get(begin..) else {
        return 0;
    };
    let Some(first) = rest.first().map(u8::to_ascii_lowercase) else {
        return 0;
    };
    let mut ends = 0;
    for name in table.iter().copied().flatten().map(|name| name.as_bytes()) {
        if name.first() == Some(&first)
            && rest
                .get(..name.len())
                .is_some_and(|found| found.eq_ignore_ascii_case(name))
        {
            ends |= place(begin + name.len());
        }
    }
    ends
}

fn each(mut begins: Places, ends_from: impl Fn(usize) -> Places) -> Places {
    let mut ends = 0;
    while begins != 0 {
        ends |= ends_from(begins.trailing_zeros() as usize);
        begins &= begins - 1;
    }
    ends
}

/// A place too far away to be told is none: nothing written in earnest is that long.
fn place(at: usize) -> Places {
    u32::try_from(at)
        .ok()
        .and_then(|at| 1_u128.checked_shl(at))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: ByteSet = ByteSet::range(b'0', b'9');
    const HOUR: Pattern = Pattern::Number {
        min: 1,
        max: 2,
        from: 0,
        to: 24,
    };

    #[test]
    fn the_longest_way_wins() {
        const HOUR_THEN_DIGITS: Pattern = Pattern::Seq(&[
            HOUR,
            Pattern::Bytes {
                of: DIGITS,
                min: 2,
                max: 2,
            },
        ]);

        assert_eq!(HOUR.longest(b"24"), Some(2));
        assert_eq!(HOUR.longest(b"25"), Some(1));
        assert_eq!(HOUR.longest(b"x"), None);
        assert_eq!(HOUR_THEN_DIGITS.longest(b"930"), Some(3));
        assert_eq!(HOUR_THEN_DIGITS.longest(b"1930"), Some(4));
    }

    #[test]
    fn the_end_of_the_text_matches_once() {
        const END: Pattern = Pattern::Repeat(&Pattern::Bytes {
            of: ByteSet::of(b"\0 "),
            min: 1,
            max: 1,
        });
        assert_eq!(END.longest(b"  "), Some(3));
        assert_eq!(END.longest(b"x"), None);
    }

    #[test]
    fn repeats_of_repeats_stay_linear() {
        const INNER: Pattern = Pattern::Repeat(&Pattern::Bytes {
            of: DIGITS,
            min: 1,
            max: u8::MAX,
        });
        const NESTED: Pattern = Pattern::Seq(&[Pattern::Repeat(&INNER), Pattern::Exact("!")]);
        assert_eq!(NESTED.longest(&[b'1'; 120]), None);
    }
}
