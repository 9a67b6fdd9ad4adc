//! Access tokens: JSON Web Tokens (RFC 7519) signed with `EdDSA`, in the profile of RFC 9068.

use aws_lc_rs::signature::Ed25519KeyPair;
use jiff::Timestamp;
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation,
    jwk::{Jwk, JwkSet, PublicKeyUse, ThumbprintHash},
};
use serde::{Deserialize, Serialize};

use domain::{
    api_client::{ApiClient, Scopes},
    api_secrets::ValidSecret,
    signing_key::{KeyLifecycle, State},
};

const ALGORITHM: Algorithm = Algorithm::EdDSA;

/// The `typ` that distinguishes access tokens from other JWTs (RFC 9068 §2.1).
const TYPE: &str = "at+jwt";

/// Tolerated clock difference between two cores, in seconds.
const MAX_CLOCK_SKEW: i64 = 30;

/// The payload of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) iss: String,
    pub(crate) aud: String,
    /// The API key, here and in `client_id`.
    pub(crate) sub: String,
    pub(crate) client_id: String,
    pub(crate) jti: String,
    /// The secret that the token was issued for ([`SecretHash::id`]): the token is valid no longer.
    ///
    /// [`SecretHash::id`]: domain::api_secrets::SecretHash::id
    pub(crate) secret_id: String,
    /// Unix time in seconds, like `nbf` and `exp`.
    pub(crate) iat: i64,
    pub(crate) nbf: i64,
    pub(crate) exp: i64,
    pub(crate) scopes: Vec<String>,
    /// `scopes`, separated by spaces (RFC 8693 §4.2).
    pub(crate) scope: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("the token is not valid")]
    Invalid,
    /// The key may have been created since the key set was loaded.
    #[error("the token is signed with an unknown key")]
    UnknownKey,
    #[error("the token has expired")]
    Expired,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot use a token signing key: {0}")]
pub(crate) struct KeyError(String);

/// A key pair for signing tokens.
pub(crate) struct SigningKey {
    /// RFC 7638 thumbprint.
    id: String,
    encoding: EncodingKey,
    decoding: DecodingKey,
    public: Jwk,
}

impl SigningKey {
    /// Generates a private key in PKCS #8 format.
    pub(crate) fn generate() -> Result<Vec<u8>, KeyError> {
        Ed25519KeyPair::generate_pkcs8v1(&aws_lc_rs::rand::SystemRandom::new())
            .map(|document| document.as_ref().to_vec())
            .map_err(|error| KeyError(error.to_string()))
    }

    pub(crate) fn from_pkcs8(private_key: &[u8]) -> Result<Self, KeyError> {
        let failed = |error: jsonwebtoken::errors::Error| KeyError(error.to_string());
        let encoding = EncodingKey::from_ed_der(private_key);
        let mut public = Jwk::from_encoding_key(&encoding, ALGORITHM).map_err(failed)?;
        let id = public.thumbprint(ThumbprintHash::SHA256).map_err(failed)?;
        public.common.key_id = Some(id.clone());
        public.common.public_key_use = Some(PublicKeyUse::Signature);
        Ok(Self {
            id,
            decoding: DecodingKey::from_jwk(&public).map_err(failed)?,
            encoding,
            public,
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

/// The signing keys of a platform, newest first. One of them signs; all of them verify.
pub(crate) struct SigningKeySet {
    keys: Vec<(SigningKey, KeyLifecycle)>,
    /// `iss` and `aud`: the platform's public URL.
    issuer: String,
}

/// A signed token.
#[derive(Debug)]
pub(crate) struct AccessToken {
    pub(crate) text: String,
    pub(crate) scopes: Scopes,
    /// In seconds.
    pub(crate) lifetime: u32,
}

impl SigningKeySet {
    pub(crate) fn new(keys: Vec<(SigningKey, KeyLifecycle)>, issuer: String) -> Self {
        Self { keys, issuer }
    }

    /// Signs a token for a client and one of its secrets. The lifetime, in seconds, is shortened to
    /// the secret's.
    pub(crate) fn sign(
        &self,
        (client, secret): (&ApiClient, ValidSecret),
        scopes: Scopes,
        now: Timestamp,
        lifetime: u32,
    ) -> Result<AccessToken, KeyError> {
        let key = self
            .current_key(now)
            .ok_or_else(|| KeyError("there is no signing key".to_owned()))?;
        let lifetime = secret.expires_at.map_or(lifetime, |end| {
            let remaining = end.duration_since(now).as_secs().max(1);
            u32::try_from(remaining).map_or(lifetime, |remaining| remaining.min(lifetime))
        });
        let now = now.as_second();
        let claims = Claims {
            iss: self.issuer.clone(),
            aud: self.issuer.clone(),
            sub: client.api_key.clone(),
            client_id: client.api_key.clone(),
            jti: uuid::Uuid::now_v7().to_string(),
            secret_id: secret.hash.id(),
            iat: now,
            nbf: now,
            exp: now.saturating_add(lifetime.into()),
            scopes: scopes
                .iter()
                .map(|scope| scope.as_str().to_owned())
                .collect(),
            scope: scopes.to_string(),
        };
        let header = Header {
            typ: Some(TYPE.to_owned()),
            kid: Some(key.id.clone()),
            ..Header::new(ALGORITHM)
        };
        let text = jsonwebtoken::encode(&header, &claims, &key.encoding)
            .map_err(|error| KeyError(error.to_string()))?;
        Ok(AccessToken {
            text,
            scopes,
            lifetime,
        })
    }

    /// The current signing key; the oldest key if this clock is behind the creation of all keys.
    fn current_key(&self, now: Timestamp) -> Option<&SigningKey> {
        let is_signing = |(_, lifecycle): &&(SigningKey, KeyLifecycle)| {
            lifecycle.state(now) == Some(State::Signing)
        };
        let current = self.keys.iter().find(is_signing).or(self.keys.last());
        current.map(|(key, _)| key)
    }

    /// Verifies type, key, algorithm, signature, issuer, audience and times of a token.
    pub(crate) fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, Error> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| Error::Invalid)?;
        let is_access_token = header
            .typ
            .is_some_and(|typ| typ.eq_ignore_ascii_case(TYPE) || typ == "application/at+jwt");
        if !is_access_token || header.alg != ALGORITHM {
            return Err(Error::Invalid);
        }
        let kid = header.kid.ok_or(Error::Invalid)?;
        let key = self
            .keys
            .iter()
            .map(|(key, _)| key)
            .find(|key| key.id == kid)
            .ok_or(Error::UnknownKey)?;

        let mut validation = Validation::new(ALGORITHM);
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&[&self.issuer]);
        validation.set_required_spec_claims(&["iss", "aud", "exp", "nbf", "sub"]);
        // Times are checked below, with `now`.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        let claims = jsonwebtoken::decode::<Claims>(token, &key.decoding, &validation)
            .map_err(|_| Error::Invalid)?
            .claims;
        if now.as_second() >= claims.exp {
            return Err(Error::Expired);
        }
        if now.as_second().saturating_add(MAX_CLOCK_SKEW) < claims.nbf {
            return Err(Error::Invalid);
        }
        Ok(claims)
    }

    /// The public keys (RFC 7517) of all keys that have not expired.
    pub(crate) fn public(&self, now: Timestamp) -> JwkSet {
        JwkSet {
            keys: self
                .keys
                .iter()
                .filter(|(_, lifecycle)| lifecycle.state(now).is_some())
                .map(|(key, _)| key.public.clone())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
    use jiff::SignedDuration;
    use serde_json::{Value, json};

    use super::*;
    use domain::{
        api_secrets::{ApiSecrets, SecretHash},
        id::ApiClientId,
    };

    const ISSUER: &str = "http://127.0.0.1:8080";

    fn key_set() -> SigningKeySet {
        key_set_of(&[(&SigningKey::generate().unwrap(), 0)], ISSUER)
    }

    /// A key set of private keys with their creation times in seconds, newest first.
    fn key_set_of(keys: &[(&[u8], i64)], issuer: &str) -> SigningKeySet {
        let created: Vec<_> = keys.iter().map(|(_, second)| at(*second)).collect();
        let keys = keys
            .iter()
            .map(|(private_key, _)| SigningKey::from_pkcs8(private_key).unwrap());
        SigningKeySet::new(
            keys.zip(KeyLifecycle::of_all(&created)).collect(),
            issuer.to_owned(),
        )
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn token(key_set: &SigningKeySet) -> String {
        sign(key_set, None).text
    }

    /// Signs a token of an hour at 1000 s, for a secret with this end.
    fn sign(key_set: &SigningKeySet, expires_at: Option<Timestamp>) -> AccessToken {
        let hash = SecretHash::of("secret");
        let client = ApiClient {
            id: ApiClientId::new(),
            store_id: None,
            display_name: "Shop".to_owned(),
            api_key: "the-key".to_owned(),
            secrets: ApiSecrets::new(hash),
            scopes: Scopes::parse("deliveries tasks").unwrap(),
            default_address: None,
            created_at: at(0),
            disabled_at: None,
        };
        let scopes = client.scopes.clone();
        let secret = ValidSecret { hash, expires_at };
        let signed = key_set.sign((&client, secret), scopes, at(1000), 3600);
        signed.unwrap()
    }

    fn part(token: &str, index: usize) -> Value {
        let text = token.split('.').nth(index).unwrap();
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
    }

    fn with_part(token: &str, index: usize, value: &Value) -> String {
        let mut parts: Vec<_> = token.split('.').map(str::to_owned).collect();
        parts[index] = BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        parts.join(".")
    }

    #[test]
    fn a_token_contains_client_scopes_and_times() {
        let key_set = key_set();
        let token = token(&key_set);

        let header = part(&token, 0);
        assert_eq!(
            header,
            json!({"typ": "at+jwt", "alg": "EdDSA", "kid": key_set.keys[0].0.id()})
        );
        let mut claims = part(&token, 1);
        assert!(claims["jti"].take().is_string());
        assert_eq!(
            claims,
            json!({
                "iss": ISSUER, "aud": ISSUER, "sub": "the-key", "client_id": "the-key",
                "jti": null, "secret_id": SecretHash::of("secret").id(), "iat": 1000, "nbf": 1000, "exp": 4600,
                "scopes": ["deliveries", "tasks"], "scope": "deliveries tasks",
            })
        );
        assert_eq!(key_set.verify(&token, at(4599)).unwrap().sub, "the-key");
    }

    #[test]
    fn a_token_is_valid_from_its_start_to_its_end() {
        let key_set = key_set();
        let token = token(&key_set);

        assert_eq!(key_set.verify(&token, at(4600)), Err(Error::Expired));
        assert!(key_set.verify(&token, at(1000 - 30)).is_ok());
        let early = key_set.verify(&token, at(1000 - 31));
        assert_eq!(early, Err(Error::Invalid));
    }

    #[test]
    fn a_token_ends_with_a_replaced_secret() {
        let key_set = key_set();
        let half_a_second = SignedDuration::from_millis(500);
        for (end, lifetime) in [
            (at(1000) + half_a_second, 1),
            (at(1001) + half_a_second, 1),
            (at(4599), 3599),
            (at(4600), 3600),
            (at(9999), 3600),
            (Timestamp::MAX, 3600),
        ] {
            let token = sign(&key_set, Some(end));
            let exp = key_set.verify(&token.text, at(1000)).unwrap().exp;
            assert_eq!(
                (token.lifetime, exp),
                (lifetime, 1000 + i64::from(lifetime)),
                "{end}"
            );
        }
    }

    #[test]
    fn an_altered_or_foreign_token_is_rejected() {
        let key_set = key_set();
        let good = token(&key_set);
        let mut other_type = part(&good, 0);
        other_type["typ"] = "JWT".into();
        let mut none = part(&good, 0);
        none["alg"] = "none".into();
        let mut symmetric = part(&good, 0);
        symmetric["alg"] = "HS256".into();
        let mut no_key = part(&good, 0);
        no_key.as_object_mut().unwrap().remove("kid");
        let mut longer = part(&good, 1);
        longer["exp"] = 999_999.into();

        let unsigned = with_part(&good, 0, &none);
        for forged in [
            with_part(&good, 0, &other_type),
            unsigned.rsplit_once('.').unwrap().0.to_owned() + ".",
            unsigned,
            with_part(&good, 0, &symmetric),
            with_part(&good, 0, &no_key),
            with_part(&good, 1, &longer),
            good[..good.len() - 1].to_owned(),
            format!("{good}A"),
            String::new(),
            "a.b.c".to_owned(),
        ] {
            let result = key_set.verify(&forged, at(2000));
            assert_eq!(result, Err(Error::Invalid), "{forged}");
        }
        let foreign = token(&self::key_set());
        assert_eq!(key_set.verify(&foreign, at(2000)), Err(Error::UnknownKey));
        let mut impostor = part(&foreign, 0);
        impostor["kid"] = key_set.keys[0].0.id().into();
        let impostor = key_set.verify(&with_part(&foreign, 0, &impostor), at(2000));
        assert_eq!(impostor, Err(Error::Invalid));
    }

    #[test]
    fn a_token_of_another_platform_is_rejected() {
        let private_key = SigningKey::generate().unwrap();
        let key_set = |issuer: &str| key_set_of(&[(&private_key, 0)], issuer);

        let result = key_set("https://other.example").verify(&token(&key_set(ISSUER)), at(2000));

        assert_eq!(result, Err(Error::Invalid));
    }

    #[test]
    fn a_new_key_signs_a_minute_after_its_creation_and_the_old_key_still_verifies() {
        let (old, new) = (
            SigningKey::generate().unwrap(),
            SigningKey::generate().unwrap(),
        );
        let signing_key = |created: i64| {
            let key_set = key_set_of(&[(&new, created), (&old, 0)], ISSUER);
            let token = token(&key_set);
            assert!(key_set.verify(&token, at(2000)).is_ok());
            part(&token, 0)["kid"].clone()
        };

        let key_set = key_set_of(&[(&new, 941), (&old, 0)], ISSUER);
        // `token` signs at 1000.
        assert_eq!(signing_key(941), key_set.keys[1].0.id());
        assert_eq!(signing_key(940), key_set.keys[0].0.id());
    }
}
