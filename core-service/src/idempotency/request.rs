//! A request with an idempotency key: validates the key, and encrypts and decrypts the stored
//! response.

use domain::{
    id::{DeliveryId, StoreId},
    violation::Violations,
};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use tonic::{Response, metadata::MetadataValue};
use uuid::Uuid;
use zeroize::Zeroizing;

use storage::{
    Session,
    idempotency_keys::{self, Acquisition, Key, Request, StoredResponse},
};

use crate::{
    auth::caller::Caller,
    error::Error,
    secrets::secret_box::{self, Purpose, SecretBox},
};

/// How long a response is stored.
const RETENTION: SignedDuration = SignedDuration::from_hours(7 * 24);

const MAX_KEY_LENGTH: usize = 255;

/// The idempotency key of a request, if it has one.
pub(crate) type RequestKey = Option<KeyedRequest>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyedRequest {
    pub(super) key: Key,
    /// The hash of the request's content. Another request under the same key has another hash.
    pub(super) hash: [u8; 32],
    /// The delivery whose personal data the response may have.
    pub(super) delivery_id: Option<DeliveryId>,
    pub(super) now: Timestamp,
}

impl KeyedRequest {
    pub(super) fn parse(
        caller: &Caller,
        operation: &str,
        idempotency: proto::Idempotency,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let mut violations = Violations::new();
        if !is_valid_key(&idempotency.key) {
            violations.add(
                "idempotency.key",
                "INVALID_IDEMPOTENCY_KEY",
                format!("must be 1 to {MAX_KEY_LENGTH} printable ASCII characters"),
            );
        }
        let hash = <[u8; 32]>::try_from(idempotency.request_hash).map_err(|_| "must be 32 bytes");
        let field = "idempotency.request_hash";
        match violations.check(field, "INVALID_HASH", hash) {
            Some(hash) if violations.is_empty() => Ok(Self {
                key: Key {
                    // The clients of operators belong to no store.
                    store_id: caller
                        .store()
                        .map_or(StoreId(Uuid::nil()), |store| store.id),
                    api_client_id: caller.id,
                    hash: key_hash(operation, &idempotency.key),
                },
                hash,
                delivery_id: None,
                now,
            }),
            _ => Err(Error::Invalid(violations)),
        }
    }

    /// The same request under a key of a delivery's store, whose personal data its response may have.
    pub(crate) fn of_delivery(self, store_id: StoreId, id: DeliveryId) -> Self {
        let key = Key {
            store_id,
            ..self.key
        };
        Self {
            key,
            delivery_id: Some(id),
            ..self
        }
    }

    /// What is stored of it.
    pub(super) fn request(&self) -> Request {
        Request {
            hash: self.hash,
            delivery_id: self.delivery_id,
        }
    }

    /// Acquires the key for this transaction, or returns the stored response. Waits for a
    /// concurrent request with the same key, up to the database's lock timeout.
    pub(super) async fn acquire(&self, transaction: &Session) -> Result<Acquisition, Error> {
        let cutoff = expired_before(self.now);
        idempotency_keys::acquire(transaction, self.key, self.request(), self.now, cutoff)
            .await
            .map_err(|error| match error {
                error if error.is_lock_timeout() => Error::IdempotencyKeyInUse,
                error => error.into(),
            })
    }

    /// Encrypts a response, which can contain secrets.
    pub(super) fn encrypt(&self, secret_box: &SecretBox, message: &impl prost::Message) -> Vec<u8> {
        let plain = Zeroizing::new(message.encode_to_vec());
        encrypt(secret_box, self.key, &plain)
    }

    /// Decrypts a stored response. Fails if it belongs to another request.
    pub(super) fn decrypt<M>(
        &self,
        secret_box: &SecretBox,
        stored: &StoredResponse,
    ) -> Result<M, Error>
    where
        M: prost::Message + Default,
    {
        if stored.request_hash != self.hash {
            return Err(Error::IdempotencyKeyReused);
        }
        let plain = decrypt(secret_box, self.key, &stored.encrypted_response)?;
        let message = M::decode(plain.as_slice());
        Ok(message.map_err(|error| storage::Error::inconsistent("idempotency_keys", error))?)
    }

    /// The stored response, marked as a replay. Fails if it belongs to another request.
    pub(super) fn replay<M>(
        &self,
        secret_box: &SecretBox,
        stored: &StoredResponse,
    ) -> Result<Response<M>, Error>
    where
        M: prost::Message + Default,
    {
        let mut response = Response::new(self.decrypt(secret_box, stored)?);
        let replayed = MetadataValue::from_static("true");
        response
            .metadata_mut()
            .insert(proto::IDEMPOTENT_REPLAYED, replayed);
        Ok(response)
    }
}

pub(super) fn encrypt(secret_box: &SecretBox, key: Key, plain: &[u8]) -> Vec<u8> {
    secret_box.encrypt(Purpose::StoredResponse, &context(key), plain)
}

pub(super) fn decrypt(
    secret_box: &SecretBox,
    key: Key,
    encrypted: &[u8],
) -> Result<Zeroizing<Vec<u8>>, secret_box::Error> {
    secret_box.decrypt(Purpose::StoredResponse, &context(key), encrypted)
}

/// Like [`SecretBox::reencrypt`].
pub(super) fn reencrypt(
    secret_box: &SecretBox,
    key: Key,
    encrypted: &[u8],
) -> Result<Option<Vec<u8>>, secret_box::Error> {
    secret_box.reencrypt(Purpose::StoredResponse, &context(key), encrypted)
}

/// A response can be decrypted only with the same API client and idempotency key.
fn context(key: Key) -> Vec<u8> {
    [key.api_client_id.0.as_bytes(), &key.hash[..]].concat()
}

/// Responses that were stored before this instant have expired.
pub(crate) fn expired_before(now: Timestamp) -> Timestamp {
    now.checked_sub(RETENTION).unwrap_or(Timestamp::MIN)
}

fn is_valid_key(key: &str) -> bool {
    (1..=MAX_KEY_LENGTH).contains(&key.len()) && key.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn key_hash(operation: &str, key: &str) -> [u8; 32] {
    // Keys contain no line break, so that different pairs have different texts.
    Sha256::new()
        .chain_update(operation)
        .chain_update("\n")
        .chain_update(key)
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use domain::id::ApiClientId;

    use super::*;

    #[test]
    fn a_response_can_be_decrypted_only_under_its_key() {
        let directory = tempfile::tempdir().unwrap();
        let secret_box = SecretBox::open_or_create(&directory.path().join("master.key")).unwrap();
        let key = |client: u128, hash| Key {
            store_id: StoreId(Uuid::nil()),
            api_client_id: ApiClientId(Uuid::from_u128(client)),
            hash: [hash; 32],
        };

        let encrypted = encrypt(&secret_box, key(1, 1), b"response");

        let decrypted = |key| decrypt(&secret_box, key, &encrypted).map(|plain| plain.to_vec());
        assert_eq!(decrypted(key(1, 1)).unwrap(), b"response");
        for other in [key(2, 1), key(1, 2)] {
            assert!(decrypted(other).is_err(), "{other:?}");
        }
    }

    #[test]
    fn a_key_has_1_to_255_printable_ascii_characters() {
        let longest = "a".repeat(255);
        for key in ["a", " ~", longest.as_str()] {
            assert!(is_valid_key(key), "{key:?}");
        }
        let too_long = "a".repeat(256);
        for key in ["", "é", "a\nb", "\u{7f}", too_long.as_str()] {
            assert!(!is_valid_key(key), "{key:?}");
        }
    }

    #[test]
    fn a_request_needs_a_valid_key_and_a_whole_hash() {
        let store = storage::fixture::store("A");
        let caller = Caller::of_store(ApiClientId::new(), store);
        for (key, length, invalid_fields) in [
            ("key", 32, None),
            ("", 32, Some(&["idempotency.key"][..])),
            ("key", 31, Some(&["idempotency.request_hash"])),
            (
                "é",
                33,
                Some(&["idempotency.key", "idempotency.request_hash"]),
            ),
        ] {
            let idempotency = proto::Idempotency {
                key: key.to_owned(),
                request_hash: vec![7; length],
            };

            let parsed = KeyedRequest::parse(&caller, "op", idempotency, Timestamp::UNIX_EPOCH);

            let fields = match &parsed {
                Ok(parsed) => {
                    assert_eq!(parsed.hash, [7; 32]);
                    None
                }
                Err(Error::Invalid(violations)) => {
                    Some(violations.iter().map(|found| &*found.field))
                }
                Err(other) => panic!("{other:?}"),
            };
            let fields = fields.map(Iterator::collect::<Vec<_>>);
            assert_eq!(fields.as_deref(), invalid_fields, "{key:?} {length}");
        }
    }

    #[test]
    fn a_key_is_hashed_with_its_operation() {
        let hash = key_hash("POST /a", "key");

        assert_eq!(key_hash("POST /a", "key"), hash);
        for (operation, key) in [("POST /b", "key"), ("POST /a", "kez"), ("POST /", "akey")] {
            assert_ne!(key_hash(operation, key), hash, "{operation} {key}");
        }
    }
}
