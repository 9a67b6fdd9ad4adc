//! Classifies host names by the latency of their last lookup.

use std::collections::HashMap;

/// The maximum number of names in one generation of the history.
const GENERATION_SIZE: usize = 4096;

/// The latency of the last lookup of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LatencyClass {
    Fast,
    Slow,
}

/// Latency classes of recent names, in two generations: when the recent one is full, it replaces
/// the older.
#[derive(Default)]
pub(super) struct LatencyHistory {
    recent: HashMap<String, LatencyClass>,
    older: HashMap<String, LatencyClass>,
}

impl LatencyHistory {
    /// The class of a name; `None` if it was not looked up recently.
    pub(super) fn get(&self, name: &str) -> Option<LatencyClass> {
        let class = self.recent.get(name).or_else(|| self.older.get(name));
        class.copied()
    }

    pub(super) fn record(&mut self, name: &str, class: LatencyClass) {
        self.recent.insert(name.to_owned(), class);
        if self.recent.len() >= GENERATION_SIZE {
            self.older = std::mem::take(&mut self.recent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_names_are_retained_and_older_ones_evicted() {
        let mut history = LatencyHistory::default();
        let name = |number: usize| number.to_string();
        for number in 0..3 * GENERATION_SIZE {
            history.record(&name(number), LatencyClass::Slow);
        }
        assert_eq!(
            history.get(&name(3 * GENERATION_SIZE - 1)),
            Some(LatencyClass::Slow)
        );
        assert_eq!(
            history.get(&name(2 * GENERATION_SIZE)),
            Some(LatencyClass::Slow)
        );
        assert_eq!(history.get(&name(GENERATION_SIZE - 1)), None);
        assert!(history.recent.len() + history.older.len() <= 2 * GENERATION_SIZE);
    }
}
