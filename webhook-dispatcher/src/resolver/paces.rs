//! How fast names were, of late.

use std::collections::HashMap;

/// Of how many names at least it is remembered how fast they were.
const REMEMBERED: usize = 4096;

/// How fast a name was the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Quick,
    Slow,
}

/// The names of late, in two generations: the older one is forgotten when the younger is full.
#[derive(Default)]
pub(super) struct Paces {
    young: HashMap<String, Pace>,
    old: HashMap<String, Pace>,
}

impl Paces {
    /// None for a name that has not been looked up of late.
    pub(super) fn of(&self, name: &str) -> Option<Pace> {
        let pace = self.young.get(name).or_else(|| self.old.get(name));
        pace.copied()
    }

    pub(super) fn note(&mut self, name: &str, pace: Pace) {
        self.young.insert(name.to_owned(), pace);
        if self.young.len() >= REMEMBERED {
            self.old = std::mem::take(&mut self.young);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_late_are_remembered_and_older_ones_forgotten() {
        let mut paces = Paces::default();
        let name = |number: usize| number.to_string();
        for number in 0..3 * REMEMBERED {
            paces.note(&name(number), Pace::Slow);
        }
        assert_eq!(paces.of(&name(3 * REMEMBERED - 1)), Some(Pace::Slow));
        assert_eq!(paces.of(&name(2 * REMEMBERED)), Some(Pace::Slow));
        assert_eq!(paces.of(&name(REMEMBERED - 1)), None);
        assert!(paces.young.len() + paces.old.len() <= 2 * REMEMBERED);
    }
}
