//! A webhook's secrets: the newest, and the retired ones, which stay valid for a limited time.

use jiff::{SignedDuration, Timestamp};

/// How long retired secrets stay valid: the default and the upper limit.
pub const DEFAULT_OVERLAP: SignedDuration = SignedDuration::from_hours(24);
pub const MAX_OVERLAP: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Limit of retired secrets: each adds a signature to every notification.
const MAX_RETIRED: usize = 3;

/// A webhook's secrets, each encrypted as in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secrets {
    pub newest: Vec<u8>,
    /// The replaced secrets, oldest first.
    pub retired: Vec<Vec<u8>>,
    /// When the retired secrets expire.
    pub overlap_ends_at: Option<Timestamp>,
}

impl Secrets {
    /// A single secret.
    pub fn new(newest: Vec<u8>) -> Self {
        Self {
            newest,
            retired: Vec::new(),
            overlap_ends_at: None,
        }
    }

    /// When the retired secrets expire; `None` if there is none, or all have expired.
    pub fn overlap_ends_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.overlap_ends_at
            .filter(|end| now < *end && !self.retired.is_empty())
    }

    /// The secrets to sign with at `now`, oldest first: the platform signature uses the first,
    /// the Standard Webhooks signature all of them.
    pub fn valid(&self, now: Timestamp) -> impl Iterator<Item = &[u8]> {
        let expired = match self.overlap_ends_at(now) {
            Some(_) => 0,
            None => self.retired.len(),
        };
        self.all().skip(expired)
    }

    /// Adds a new secret; the retired ones stay valid until `overlap_ends_at`.
    ///
    /// A rotation during an overlap sets the new end for all retired secrets, later or earlier, so that
    /// receivers with the oldest secret and receivers with an intermediate one both continue to verify.
    /// If there are too many, the second oldest is removed.
    pub fn rotate(&mut self, new: Vec<u8>, overlap_ends_at: Timestamp, now: Timestamp) {
        if self.overlap_ends_at(now).is_none() {
            self.retired.clear();
        }
        self.retired.push(std::mem::replace(&mut self.newest, new));
        if self.retired.len() > MAX_RETIRED {
            self.retired.remove(1);
        }
        self.overlap_ends_at = Some(overlap_ends_at);
        self.remove_expired(now);
    }

    /// Ends the overlap: only the newest secret stays valid.
    pub fn confirm(&mut self) {
        self.retired.clear();
        self.overlap_ends_at = None;
    }

    /// Replaces each ciphertext, and removes the expired ones.
    pub fn reencrypt<E>(
        &mut self,
        now: Timestamp,
        encrypt: impl Fn(&[u8]) -> Result<Vec<u8>, E>,
    ) -> Result<(), E> {
        self.remove_expired(now);
        for secret in self.retired.iter_mut().chain([&mut self.newest]) {
            *secret = encrypt(secret)?;
        }
        Ok(())
    }

    /// All ciphertexts, expired ones included.
    pub fn all(&self) -> impl Iterator<Item = &[u8]> {
        let retired = self.retired.iter().map(Vec::as_slice);
        retired.chain([self.newest.as_slice()])
    }

    fn remove_expired(&mut self, now: Timestamp) {
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

    fn valid(secrets: &Secrets, now: Timestamp) -> Vec<&str> {
        secrets
            .valid(now)
            .map(|secret| std::str::from_utf8(secret).unwrap())
            .collect()
    }

    #[test]
    fn all_secrets_are_reencrypted_and_expired_ones_removed() {
        let mut secrets = Secrets::new(b"a".to_vec());
        secrets.rotate(b"b".to_vec(), at(24), NOW);
        let upper = |secret: &[u8]| Ok::<_, ()>(secret.to_ascii_uppercase());

        secrets.reencrypt(at(23), upper).unwrap();
        assert_eq!(valid(&secrets, at(23)), ["A", "B"]);
        assert_eq!(secrets.all().collect::<Vec<_>>(), [b"A", b"B"]);

        secrets.reencrypt(at(24), upper).unwrap();
        assert_eq!(secrets.all().collect::<Vec<_>>(), [b"B"]);
        assert_eq!(secrets.reencrypt(at(24), |_| Err(())), Err(()));
    }

    #[test]
    fn during_an_overlap_the_oldest_secret_signs_first_until_it_expires() {
        let mut secrets = Secrets::new(b"a".to_vec());
        assert_eq!(
            (valid(&secrets, NOW), secrets.overlap_ends_at(NOW)),
            (vec!["a"], None)
        );

        secrets.rotate(b"b".to_vec(), at(24), NOW);

        assert_eq!(
            (&secrets.newest, &secrets.retired),
            (&b"b".to_vec(), &vec![b"a".to_vec()])
        );
        assert_eq!(valid(&secrets, at(23)), ["a", "b"]);
        assert_eq!(secrets.overlap_ends_at(at(23)), Some(at(24)));
        assert_eq!(valid(&secrets, at(24)), ["b"]);
        assert_eq!(secrets.overlap_ends_at(at(24)), None);
        secrets.rotate(b"c".to_vec(), at(50), at(26));
        assert_eq!(valid(&secrets, at(27)), ["b", "c"], "a stays expired");
    }

    #[test]
    fn a_confirmation_keeps_only_the_newest_secret() {
        let mut secrets = Secrets::new(b"a".to_vec());
        secrets.rotate(b"b".to_vec(), at(24), NOW);

        for _ in 0..2 {
            secrets.confirm();
            assert_eq!(secrets, Secrets::new(b"b".to_vec()));
        }
    }

    #[test]
    fn an_empty_overlap_expires_all_retired_secrets_at_once() {
        let mut secrets = Secrets::new(b"a".to_vec());
        secrets.rotate(b"b".to_vec(), at(24), NOW);

        secrets.rotate(b"c".to_vec(), NOW, NOW);

        assert_eq!(secrets, Secrets::new(b"c".to_vec()));
    }

    #[test]
    fn a_second_rotation_during_an_overlap_keeps_older_secrets_valid() {
        let mut secrets = Secrets::new(b"a".to_vec());
        secrets.rotate(b"b".to_vec(), at(24), NOW);
        secrets.rotate(b"c".to_vec(), at(44), at(20));
        assert_eq!(valid(&secrets, at(43)), ["a", "b", "c"]);

        secrets.rotate(b"d".to_vec(), at(45), at(21));
        secrets.rotate(b"e".to_vec(), at(46), at(22));

        assert_eq!(valid(&secrets, at(45)), ["a", "c", "d", "e"]);
        assert_eq!(valid(&secrets, at(46)), ["e"]);
    }
}
