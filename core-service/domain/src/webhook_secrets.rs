//! A webhook's live secrets: one, and during a rotation those it replaces.

use jiff::{SignedDuration, Timestamp};

/// How long old secrets stay live unless said otherwise, and at most.
pub const OVERLAP: SignedDuration = SignedDuration::from_hours(24);
pub const LONGEST_OVERLAP: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How many old secrets are kept: each costs a signature a notification.
const MOST_RETIRED: usize = 3;

/// A webhook's secrets, each as it is stored: sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secrets {
    newest: Vec<u8>,
    /// Those it replaces, oldest first.
    retired: Vec<Vec<u8>>,
    /// Until when the retired ones are live.
    overlap_ends_at: Option<Timestamp>,
}

impl Secrets {
    /// One secret alone.
    pub fn new(newest: Vec<u8>) -> Self {
        Self {
            newest,
            retired: Vec::new(),
            overlap_ends_at: None,
        }
    }

    /// As they were stored.
    pub fn stored(
        newest: Vec<u8>,
        retired: Vec<Vec<u8>>,
        overlap_ends_at: Option<Timestamp>,
    ) -> Self {
        Self {
            newest,
            retired,
            overlap_ends_at,
        }
    }

    pub fn newest(&self) -> &[u8] {
        &self.newest
    }

    /// Oldest first.
    pub fn retired(&self) -> &[Vec<u8>] {
        &self.retired
    }

    /// Until when old secrets are live too; none if there is none, or their time is over.
    pub fn overlap_ends_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.overlap_ends_at
            .filter(|end| now < *end && !self.retired.is_empty())
    }

    /// The secrets to sign with now, oldest first: the first keys the specified signature, all
    /// of them the Standard Webhooks one.
    pub fn live(&self, now: Timestamp) -> impl Iterator<Item = &[u8]> {
        let retired = match self.overlap_ends_at(now) {
            Some(_) => self.retired.as_slice(),
            None => &[],
        };
        retired
            .iter()
            .map(Vec::as_slice)
            .chain(std::iter::once(self.newest()))
    }

    /// Takes a new secret; the old ones stay live until `overlap_ends_at`.
    ///
    /// During an overlap the overlap begins anew for all: a receiver that still holds the oldest
    /// goes on as before, and one that has taken up the one between is not cut off. Only when
    /// there are too many goes the oldest but one.
    pub fn rotate(&mut self, new: Vec<u8>, overlap_ends_at: Timestamp, now: Timestamp) {
        if self.overlap_ends_at(now).is_none() {
            self.retired.clear();
        }
        self.retired.push(std::mem::replace(&mut self.newest, new));
        if self.retired.len() > MOST_RETIRED {
            self.retired.remove(1);
        }
        self.overlap_ends_at = Some(overlap_ends_at);
        self.forget_if_over(now);
    }

    /// Ends the overlap: the newest alone is live.
    pub fn confirm(&mut self) {
        self.retired.clear();
        self.overlap_ends_at = None;
    }

    /// What is live no more need not be kept.
    fn forget_if_over(&mut self, now: Timestamp) {
        if self.overlap_ends_at(now).is_none() {
            self.confirm();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn at(hours: i64) -> Timestamp {
        NOW + SignedDuration::from_hours(hours)
    }

    fn live(secrets: &Secrets, now: Timestamp) -> Vec<&str> {
        secrets
            .live(now)
            .map(|secret| std::str::from_utf8(secret).unwrap())
            .collect()
    }

    #[test]
    fn during_an_overlap_the_oldest_goes_first_and_at_its_end_it_goes() {
        let mut secrets = Secrets::new(b"a".to_vec());
        assert_eq!(
            (live(&secrets, NOW), secrets.overlap_ends_at(NOW)),
            (vec!["a"], None)
        );

        secrets.rotate(b"b".to_vec(), at(24), NOW);

        assert_eq!(live(&secrets, at(23)), ["a", "b"]);
        assert_eq!(secrets.overlap_ends_at(at(23)), Some(at(24)));
        assert_eq!(live(&secrets, at(24)), ["b"]);
        assert_eq!(secrets.overlap_ends_at(at(24)), None);
        secrets.rotate(b"c".to_vec(), at(50), at(26));
        assert_eq!(live(&secrets, at(27)), ["b", "c"], "a is not raised again");
    }

    #[test]
    fn a_confirmation_leaves_the_newest_alone() {
        let mut secrets = Secrets::new(b"a".to_vec());
        secrets.rotate(b"b".to_vec(), at(24), NOW);

        for _ in 0..2 {
            secrets.confirm();
            assert_eq!(secrets, Secrets::new(b"b".to_vec()));
        }
    }

    #[test]
    fn an_overlap_of_nothing_ends_every_old_secret_at_once() {
        let mut secrets = Secrets::new(b"a".to_vec());
        secrets.rotate(b"b".to_vec(), at(24), NOW);

        secrets.rotate(b"c".to_vec(), NOW, NOW);

        assert_eq!(secrets, Secrets::new(b"c".to_vec()));
    }

    #[test]
    fn a_second_rotation_during_an_overlap_cuts_nobody_off() {
        let mut secrets = Secrets::new(b"a".to_vec());
        secrets.rotate(b"b".to_vec(), at(24), NOW);
        secrets.rotate(b"c".to_vec(), at(44), at(20));
        assert_eq!(live(&secrets, at(43)), ["a", "b", "c"]);

        secrets.rotate(b"d".to_vec(), at(45), at(21));
        secrets.rotate(b"e".to_vec(), at(46), at(22));

        assert_eq!(live(&secrets, at(45)), ["a", "c", "d", "e"]);
        assert_eq!(live(&secrets, at(46)), ["e"]);
    }
}
