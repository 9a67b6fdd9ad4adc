//! An API client's secrets: the current one, and the retired ones, each valid until the overlap
//! of its own rotation ends.

use std::iter;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

/// How long a retired secret stays valid: the default and the upper limit.
pub const DEFAULT_OVERLAP: SignedDuration = SignedDuration::from_hours(24);
pub const MAX_OVERLAP: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Limit of retired secrets that are valid at the same time.
const MAX_RETIRED: usize = 5;

/// The stored SHA-256 of an API secret. The secret has 256 random bits, so a slow hash would add
/// no protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// Names the secret in its tokens: 32 hexadecimal digits, which reveal neither secret nor hash.
    pub fn id(&self) -> String {
        let digest: [u8; 32] = Sha256::digest(self.0).into();
        format!("{:032x}", u128::from_be_bytes(digest.as_chunks().0[0]))
    }

    /// Compares in constant time.
    pub fn matches(&self, secret: &str) -> bool {
        self.0.ct_eq(&Self::of(secret).0).into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetiredSecret {
    pub hash: SecretHash,
    pub expires_at: Timestamp,
}

/// A secret that is valid now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidSecret {
    pub hash: SecretHash,
    /// The end of a retired secret's overlap; `None` for the current secret.
    pub expires_at: Option<Timestamp>,
}

/// The secrets of an API client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiSecrets {
    pub current: SecretHash,
    /// Oldest first; some may have expired.
    pub retired: Vec<RetiredSecret>,
}

impl ApiSecrets {
    /// A single secret.
    pub fn new(current: SecretHash) -> Self {
        Self {
            current,
            retired: Vec::new(),
        }
    }

    /// Finds a secret if it is valid at `now`. Compares it with all valid ones, so that the
    /// duration does not reveal which one matches.
    pub fn accept(&self, secret: &str, now: Timestamp) -> Option<ValidSecret> {
        self.valid(now).fold(None, |found, valid| {
            valid.hash.matches(secret).then_some(valid).or(found)
        })
    }

    /// Finds the secret of a token by [`SecretHash::id`] if it is valid at `now`.
    pub fn find(&self, id: &str, now: Timestamp) -> Option<ValidSecret> {
        self.valid(now).find(|valid| valid.hash.id() == id)
    }

    fn valid(&self, now: Timestamp) -> impl Iterator<Item = ValidSecret> {
        let current = ValidSecret {
            hash: self.current,
            expires_at: None,
        };
        let retired = self.retired.iter().map(|retired| ValidSecret {
            hash: retired.hash,
            expires_at: Some(retired.expires_at),
        });
        let is_valid = move |secret: &ValidSecret| secret.expires_at.is_none_or(|end| now < end);
        iter::once(current).chain(retired).filter(is_valid)
    }

    /// Replaces the current secret, which stays valid for `overlap`; earlier ones keep their own
    /// expiry. An overlap of zero, for a compromised secret, invalidates all retired ones. Fails
    /// if too many retired secrets are still valid.
    pub fn rotate(
        &mut self,
        new: SecretHash,
        overlap: SignedDuration,
        now: Timestamp,
    ) -> Result<(), String> {
        if overlap.is_zero() {
            self.retired.clear();
            self.current = new;
            return Ok(());
        }
        self.retired.retain(|retired| now < retired.expires_at);
        let expiries = self.retired.iter().map(|retired| retired.expires_at);
        let first_expiry = expiries.min();
        if let Some(first_expiry) = first_expiry
            && self.retired.len() >= MAX_RETIRED
        {
            return Err(format!(
                "{MAX_RETIRED} replaced secrets of this client are still valid: rotate after \
                 {first_expiry}, when the first of them expires, or with an overlap of 0, which \
                 invalidates all of them at once"
            ));
        }
        self.retired.push(RetiredSecret {
            hash: std::mem::replace(&mut self.current, new),
            expires_at: now.checked_add(overlap).unwrap_or(Timestamp::MAX),
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hour)
    }

    fn hours(hours: i64) -> SignedDuration {
        SignedDuration::from_hours(hours)
    }

    /// Rotates to the secret `new` at an hour.
    #[track_caller]
    fn rotate(secrets: &mut ApiSecrets, new: &str, overlap: i64, hour: i64) {
        let rotated = secrets.rotate(SecretHash::of(new), hours(overlap), at(hour));
        assert_eq!(rotated, Ok(()), "{new}");
    }

    /// The letters that are valid at an hour.
    fn valid(secrets: &ApiSecrets, hour: i64) -> String {
        let is_valid = |letter: &char| {
            let accepted = secrets.accept(&letter.to_string(), at(hour));
            let id = SecretHash::of(&letter.to_string()).id();
            assert_eq!(secrets.find(&id, at(hour)), accepted, "{letter}");
            accepted.is_some()
        };
        ('a'..='z').filter(is_valid).collect()
    }

    #[test]
    fn a_secret_is_compared_as_written() {
        let secrets = ApiSecrets::new(SecretHash::of("secret"));

        assert!(secrets.accept("secret", at(0)).is_some());
        for wrong in ["Secret", "secret ", ""] {
            assert_eq!(secrets.accept(wrong, at(0)), None, "{wrong:?}");
            assert_eq!(secrets.find(wrong, at(0)), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_valid_secret_is_found_with_its_end_under_an_id_of_its_own() {
        let mut secrets = ApiSecrets::new(SecretHash::of("a"));
        rotate(&mut secrets, "b", 24, 0);

        for (letter, expires_at) in [("a", Some(at(24))), ("b", None)] {
            let hash = SecretHash::of(letter);
            let expected = Some(ValidSecret { hash, expires_at });
            assert_eq!(secrets.accept(letter, at(1)), expected);
            assert_eq!(secrets.find(&hash.id(), at(1)), expected);
        }
        // The first half of `printf secret | sha256sum | xxd -r -p | sha256sum`.
        assert_eq!(
            SecretHash::of("secret").id(),
            "3881219d087dd9c634373fd33dfa33a2"
        );
    }

    #[test]
    fn each_replaced_secret_is_valid_until_its_own_overlap_ends() {
        let mut secrets = ApiSecrets::new(SecretHash::of("a"));
        rotate(&mut secrets, "b", 24, 0);
        rotate(&mut secrets, "c", 10, 1);
        rotate(&mut secrets, "d", 24, 2);

        let retired = secrets.retired.iter();
        let retired: Vec<_> = retired.map(|r| (r.hash, r.expires_at)).collect();
        let expected = [("a", 24), ("b", 11), ("c", 26)];
        assert_eq!(
            retired,
            expected.map(|(secret, end)| (SecretHash::of(secret), at(end)))
        );
        for (hour, expected) in [
            (2, "abcd"),
            (10, "abcd"),
            (11, "acd"),
            (23, "acd"),
            (24, "cd"),
            (26, "d"),
        ] {
            assert_eq!(valid(&secrets, hour), expected, "{hour}");
        }
    }

    #[test]
    fn an_overlap_of_zero_invalidates_all_replaced_secrets() {
        let mut secrets = ApiSecrets::new(SecretHash::of("a"));
        rotate(&mut secrets, "b", 24, 0);

        rotate(&mut secrets, "c", 0, 1);

        assert_eq!(secrets, ApiSecrets::new(SecretHash::of("c")));
    }

    #[test]
    fn a_rotation_is_refused_while_the_limit_of_replaced_secrets_is_valid() {
        let mut secrets = ApiSecrets::new(SecretHash::of("a"));
        for (hour, new) in (0..).zip(["b", "c", "d", "e"]) {
            rotate(&mut secrets, new, 24, hour);
        }
        rotate(&mut secrets, "f", 10, 4);
        let full = secrets.clone();

        let refused = secrets.rotate(SecretHash::of("g"), hours(1), at(13));

        assert_eq!(
            refused.unwrap_err(),
            "5 replaced secrets of this client are still valid: rotate after 1970-01-01T14:00:00Z, \
             when the first of them expires, or with an overlap of 0, which invalidates all of them \
             at once"
        );
        assert_eq!(secrets, full);
        rotate(&mut secrets, "g", 1, 14);
        assert_eq!(valid(&secrets, 14), "abcdfg");
        rotate(&mut secrets, "h", 0, 14);
        assert_eq!(valid(&secrets, 14), "h");
    }
}
