//! How much of something each holder has at once, such as a client's calls in flight.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use parking_lot::Mutex;

/// Counts by holder.
pub struct Concurrency<H> {
    entered: Mutex<HashMap<H, usize>>,
}

/// One of its holder's; ends when dropped.
pub struct Entered<H: Eq + Hash> {
    concurrency: Arc<Concurrency<H>>,
    holder: H,
}

impl<H: Eq + Hash + Clone> Concurrency<H> {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            entered: Mutex::new(HashMap::new()),
        })
    }

    /// Enters once more for a holder, unless it has as many as the limit.
    pub fn enter(self: &Arc<Self>, holder: H, limit: usize) -> Option<Entered<H>> {
        let mut entered = self.entered.lock();
        let count = entered.entry(holder.clone()).or_default();
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(Entered {
            concurrency: Arc::clone(self),
            holder,
        })
    }
}

impl<H: Eq + Hash> Drop for Entered<H> {
    fn drop(&mut self) {
        let mut entered = self.concurrency.entered.lock();
        if let Some(count) = entered.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                entered.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_holder_enters_up_to_the_limit_until_it_leaves() {
        let concurrency = Concurrency::new();
        let first = concurrency.enter("a", 2);
        let _second = concurrency.enter("a", 2).unwrap();

        assert!(concurrency.enter("a", 2).is_none());
        assert!(concurrency.enter("b", 2).is_some());
        drop(first);
        assert!(concurrency.enter("a", 2).is_some());
        assert_eq!(*concurrency.entered.lock(), HashMap::from([("a", 1)]));
    }
}
