//! Access tokens: JSON Web Tokens (RFC 7519) signed with `EdDSA`, in the profile of RFC 9068.

use aws_lc_rs::signature::Ed25519KeyPair;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation,
    jwk::{Jwk, JwkSet, PublicKeyUse, ThumbprintHash},
};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use domain::{
    api_client::{ApiClient, Scopes},
    api_secrets::ValidSecret,
    signing_key::{KeyLifecycle, State},
};

const ALGORITHM: Algorithm = Algorithm::EdDSA;

/// The `typ` that distinguishes access tokens from other JWTs (RFC 9068 §2.1).
const TYPE: &str = "at+jwt";

/// Tolerated clock difference between two cores, in seconds.
pub(crate) const MAX_CLOCK_SKEW: i64 = 30;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) iss: String,
    pub(crate) aud: String,
    /// The API key, here and in `client_id`.
    pub(crate) sub: String,
    pub(crate) client_id: String,
    pub(crate) jti: String,
    /// The secret that the token was issued for ([`SecretHash::id`]). The token ends with it.
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
    /// The `kid` of the header; empty before a token is verified.
    #[serde(skip)]
    pub(crate) key_id: String,
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

pub(crate) struct SigningKey {
    /// RFC 7638 thumbprint.
    id: String,
    /// `jsonwebtoken::encode` derives the public key again for each signature.
    key_pair: Ed25519KeyPair,
    /// The encoded header of its tokens.
    header: String,
    decoding: DecodingKey,
    public: Jwk,
}

impl SigningKey {
    /// Generates a private key in PKCS #8 format.
    pub(crate) fn generate() -> Result<Zeroizing<Vec<u8>>, String> {
        Ed25519KeyPair::generate_pkcs8v1(&aws_lc_rs::rand::SystemRandom::new())
            .map(|document| document.as_ref().to_vec().into())
            .map_err(key_error)
    }

    pub(crate) fn from_pkcs8(private_key: &[u8]) -> Result<Self, String> {
        let encoding = EncodingKey::from_ed_der(private_key);
        let mut public = Jwk::from_encoding_key(&encoding, ALGORITHM).map_err(key_error)?;
        let id = public
            .thumbprint(ThumbprintHash::SHA256)
            .map_err(key_error)?;
        public.common.key_id = Some(id.clone());
        public.common.public_key_use = Some(PublicKeyUse::Signature);
        let header = Header {
            typ: Some(TYPE.to_owned()),
            kid: Some(id.clone()),
            ..Header::new(ALGORITHM)
        };
        Ok(Self {
            id,
            key_pair: Ed25519KeyPair::from_pkcs8(private_key).map_err(key_error)?,
            header: encode_part(&header)?,
            decoding: DecodingKey::from_jwk(&public).map_err(key_error)?,
            public,
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Signs claims: the compact serialization of RFC 7515 §7.1.
    fn sign(&self, claims: &Claims) -> Result<String, String> {
        let message = format!("{}.{}", self.header, encode_part(claims)?);
        let signature = self
            .key_pair
            .try_sign(message.as_bytes())
            .map_err(key_error)?;
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

fn encode_part(part: &impl Serialize) -> Result<String, String> {
    let json = serde_json::to_vec(part).map_err(key_error)?;
    Ok(URL_SAFE_NO_PAD.encode(json))
}

/// The signing keys of a platform, newest first. One of them signs; all of them verify.
pub(crate) struct SigningKeySet {
    keys: Vec<(SigningKey, KeyLifecycle)>,
    /// `iss` and `aud`: the platform's public URL.
    issuer: String,
}

impl SigningKeySet {
    pub(crate) fn new(keys: Vec<(SigningKey, KeyLifecycle)>, issuer: String) -> Self {
        Self { keys, issuer }
    }

    /// Signs a token for a client and one of its secrets. The lifetime, in seconds, is shortened to
    /// the secret's.
    pub(crate) fn sign(
        &self,
        client: &ApiClient,
        secret: ValidSecret,
        scopes: &Scopes,
        now: Timestamp,
        lifetime: u32,
    ) -> Result<proto::AccessToken, String> {
        let key = self
            .current_key(now)
            .ok_or_else(|| key_error("there is no signing key"))?;
        let lifetime = secret.expires_at.map_or(lifetime, |end| {
            let remaining = end.duration_since(now).as_secs().max(1);
            u32::try_from(remaining).map_or(lifetime, |remaining| remaining.min(lifetime))
        });
        let now = now.as_second();
        let scope = scopes.to_string();
        let scopes: Vec<_> = scopes
            .iter()
            .map(|scope| scope.as_str().to_owned())
            .collect();
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
            scopes: scopes.clone(),
            scope,
            key_id: String::new(),
        };
        Ok(proto::AccessToken {
            access_token: key.sign(&claims)?,
            expires_in: lifetime,
            scopes,
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
        let mut claims = jsonwebtoken::decode::<Claims>(token, &key.decoding, &validation)
            .map_err(|_| Error::Invalid)?
            .claims;
        claims.key_id = kid;
        if now.as_second() >= claims.exp {
            return Err(Error::Expired);
        }
        if now.as_second().saturating_add(MAX_CLOCK_SKEW) < claims.nbf {
            return Err(Error::Invalid);
        }
        Ok(claims)
    }

    /// Whether the set has a key, in any state.
    pub(crate) fn contains(&self, key_id: &str) -> bool {
        self.keys.iter().any(|(key, _)| key.id == key_id)
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

/// Why a signing key cannot be used.
fn key_error(reason: impl std::fmt::Display) -> String {
    format!("cannot use a token signing key: {reason}")
}

#[cfg(test)]
mod tests;
