//! Access tokens: JSON Web Tokens (RFC 7519) signed with `EdDSA`, in the manner of RFC 9068.

use aws_lc_rs::signature::Ed25519KeyPair;
use jiff::Timestamp;
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation,
    jwk::{Jwk, JwkSet, PublicKeyUse, ThumbprintHash},
};
use serde::{Deserialize, Serialize};

use domain::{
    api_client::{ApiClient, Scopes},
    signing_key::{Life, State},
};

const ALGORITHM: Algorithm = Algorithm::EdDSA;

/// What tells an access token from any other JWT (RFC 9068 §2.1).
const TYPE: &str = "at+jwt";

/// How far the clocks of two cores may differ.
const SKEW: i64 = 5;

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) iss: String,
    pub(crate) aud: String,
    /// The API key, here and in `client_id`.
    pub(crate) sub: String,
    pub(crate) client_id: String,
    pub(crate) jti: String,
    /// Seconds since 1970, like the next two.
    pub(crate) iat: i64,
    pub(crate) nbf: i64,
    pub(crate) exp: i64,
    pub(crate) scopes: Vec<String>,
    /// The same, separated by spaces (RFC 8693 §4.2).
    pub(crate) scope: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("the token is not valid")]
    Invalid,
    /// Perhaps signed with a key made since the ring was read.
    #[error("the token is signed with an unknown key")]
    UnknownKey,
    #[error("the token has expired")]
    Expired,
}

#[derive(Debug, thiserror::Error)]
#[error("a token signing key cannot be used: {0}")]
pub(crate) struct KeyError(String);

/// A key that signs tokens.
pub(crate) struct SigningKey {
    /// RFC 7638 thumbprint.
    id: String,
    encoding: EncodingKey,
    decoding: DecodingKey,
    public: Jwk,
}

impl SigningKey {
    /// A new private key, PKCS #8.
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

/// The keys of a platform, newest first: one signs, all verify.
pub(crate) struct Keyring {
    keys: Vec<(SigningKey, Life)>,
    /// `iss` and `aud`: the platform's public address.
    issuer: String,
}

/// A signed token.
#[derive(Debug)]
pub(crate) struct AccessToken {
    pub(crate) text: String,
    pub(crate) scopes: Scopes,
}

impl Keyring {
    pub(crate) fn new(keys: Vec<(SigningKey, Life)>, issuer: String) -> Self {
        Self { keys, issuer }
    }

    /// Signs a token for a client, good for so many seconds.
    pub(crate) fn sign(
        &self,
        client: &ApiClient,
        scopes: Scopes,
        now: Timestamp,
        lifetime: u32,
    ) -> Result<AccessToken, KeyError> {
        let key = self
            .signer(now)
            .ok_or_else(|| KeyError("there is none".to_owned()))?;
        let now = now.as_second();
        let claims = Claims {
            iss: self.issuer.clone(),
            aud: self.issuer.clone(),
            sub: client.api_key.clone(),
            client_id: client.api_key.clone(),
            jti: uuid::Uuid::now_v7().to_string(),
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
        Ok(AccessToken { text, scopes })
    }

    /// The key whose turn it is; the oldest if all were made in what this clock takes for the
    /// future.
    fn signer(&self, now: Timestamp) -> Option<&SigningKey> {
        let signs = |(_, life): &&(SigningKey, Life)| life.state(now) == Some(State::Signing);
        let signer = self.keys.iter().find(signs).or(self.keys.last());
        signer.map(|(key, _)| key)
    }

    /// Judges a token: its type, key, algorithm, signature, issuer, audience and times.
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
        // Times are judged below, by our clock.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        let claims = jsonwebtoken::decode::<Claims>(token, &key.decoding, &validation)
            .map_err(|_| Error::Invalid)?
            .claims;
        if now.as_second() >= claims.exp {
            return Err(Error::Expired);
        }
        if now.as_second().saturating_add(SKEW) < claims.nbf {
            return Err(Error::Invalid);
        }
        Ok(claims)
    }

    /// The public halves (RFC 7517) of the keys whose life is not over.
    pub(crate) fn public(&self, now: Timestamp) -> JwkSet {
        JwkSet {
            keys: self
                .keys
                .iter()
                .filter(|(_, life)| life.state(now).is_some())
                .map(|(key, _)| key.public.clone())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
    use serde_json::{Value, json};

    use super::*;
    use domain::{api_client::SecretHash, id::ApiClientId};

    const ISSUER: &str = "http://127.0.0.1:8080";

    fn keyring() -> Keyring {
        ring(&[(&SigningKey::generate().unwrap(), 0)], ISSUER)
    }

    /// Of private keys and the seconds they were made at, newest first.
    fn ring(keys: &[(&[u8], i64)], issuer: &str) -> Keyring {
        let created: Vec<_> = keys.iter().map(|(_, second)| at(*second)).collect();
        let keys = keys
            .iter()
            .map(|(private_key, _)| SigningKey::from_pkcs8(private_key).unwrap());
        Keyring::new(
            keys.zip(Life::of_all(&created)).collect(),
            issuer.to_owned(),
        )
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn token(keyring: &Keyring) -> String {
        let client = ApiClient {
            id: ApiClientId::new(),
            store_id: None,
            display_name: "Shop".to_owned(),
            api_key: "the-key".to_owned(),
            secret_hash: SecretHash::of("secret"),
            previous_secret: None,
            scopes: Scopes::parse("deliveries tasks").unwrap(),
            default_address: None,
            created_at: at(0),
            disabled_at: None,
        };
        let scopes = client.scopes.clone();
        keyring.sign(&client, scopes, at(1000), 3600).unwrap().text
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
    fn a_token_says_who_what_and_until_when() {
        let keyring = keyring();
        let token = token(&keyring);

        let header = part(&token, 0);
        assert_eq!(
            header,
            json!({"typ": "at+jwt", "alg": "EdDSA", "kid": keyring.keys[0].0.id()})
        );
        let mut claims = part(&token, 1);
        assert!(claims["jti"].take().is_string());
        assert_eq!(
            claims,
            json!({
                "iss": ISSUER, "aud": ISSUER, "sub": "the-key", "client_id": "the-key",
                "jti": null, "iat": 1000, "nbf": 1000, "exp": 4600,
                "scopes": ["deliveries", "tasks"], "scope": "deliveries tasks",
            })
        );
        assert_eq!(keyring.verify(&token, at(4599)).unwrap().sub, "the-key");
    }

    #[test]
    fn a_token_is_good_from_its_start_to_its_end() {
        let keyring = keyring();
        let token = token(&keyring);

        assert_eq!(keyring.verify(&token, at(4600)), Err(Error::Expired));
        assert!(keyring.verify(&token, at(1000 - SKEW)).is_ok());
        let early = keyring.verify(&token, at(1000 - SKEW - 1));
        assert_eq!(early, Err(Error::Invalid));
    }

    #[test]
    fn a_token_that_was_altered_or_made_elsewhere_is_refused() {
        let keyring = keyring();
        let good = token(&keyring);
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
            let judged = keyring.verify(&forged, at(2000));
            assert_eq!(judged, Err(Error::Invalid), "{forged}");
        }
        let foreign = token(&self::keyring());
        assert_eq!(keyring.verify(&foreign, at(2000)), Err(Error::UnknownKey));
        let mut posing = part(&foreign, 0);
        posing["kid"] = keyring.keys[0].0.id().into();
        let posing = keyring.verify(&with_part(&foreign, 0, &posing), at(2000));
        assert_eq!(posing, Err(Error::Invalid));
    }

    #[test]
    fn a_token_for_another_platform_is_refused() {
        let private_key = SigningKey::generate().unwrap();
        let ring = |issuer: &str| ring(&[(&private_key, 0)], issuer);

        let judged = ring("https://other.example").verify(&token(&ring(ISSUER)), at(2000));

        assert_eq!(judged, Err(Error::Invalid));
    }
    #[test]
    fn a_new_key_signs_a_minute_after_it_was_made_and_the_old_still_judges() {
        let (old, new) = (
            SigningKey::generate().unwrap(),
            SigningKey::generate().unwrap(),
        );
        let signer = |made: i64| {
            let ring = ring(&[(&new, made), (&old, 0)], ISSUER);
            let token = token(&ring);
            assert!(ring.verify(&token, at(2000)).is_ok());
            part(&token, 0)["kid"].clone()
        };

        let ring = ring(&[(&new, 941), (&old, 0)], ISSUER);
        // Tokens here are signed at 1000.
        assert_eq!(signer(941), ring.keys[1].0.id());
        assert_eq!(signer(940), ring.keys[0].0.id());
    }
}
