use jiff::SignedDuration;
use serde_json::{Value, json};

use super::*;
use domain::{
    api_client::TaskStatus,
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
    sign(key_set, None).access_token
}

/// Signs a token of an hour at 1000 s, for a secret with this end.
fn sign(key_set: &SigningKeySet, expires_at: Option<Timestamp>) -> proto::AccessToken {
    let hash = SecretHash::of("secret");
    let client = ApiClient {
        id: ApiClientId::new(),
        store_id: None,
        courier_id: None,
        display_name: "Shop".to_owned(),
        api_key: "the-key".to_owned(),
        secrets: ApiSecrets::new(hash),
        scopes: Scopes::parse("deliveries tasks").unwrap(),
        task_status: TaskStatus::Specified,
        default_address: None,
        created_at: at(0),
        disabled_at: None,
    };
    let secret = ValidSecret { hash, expires_at };
    let signed = key_set.sign(&client, secret, &client.scopes, at(1000), 3600);
    signed.unwrap()
}

fn part(token: &str, index: usize) -> Value {
    let text = token.split('.').nth(index).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
}

fn with_part(token: &str, index: usize, value: &Value) -> String {
    let mut parts: Vec<_> = token.split('.').map(str::to_owned).collect();
    parts[index] = URL_SAFE_NO_PAD.encode(value.to_string());
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
fn a_token_is_valid_from_30_s_before_its_start_to_its_end() {
    let key_set = key_set();
    let token = token(&key_set);

    assert_eq!(key_set.verify(&token, at(4600)), Err(Error::Expired));
    assert!(key_set.verify(&token, at(1000 - 30)).is_ok());
    let early = key_set.verify(&token, at(1000 - 31));
    assert_eq!(early, Err(Error::Invalid));
}

#[test]
fn a_token_expires_with_its_retired_secret() {
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
        let exp = key_set.verify(&token.access_token, at(1000)).unwrap().exp;
        assert_eq!(
            (token.expires_in, exp),
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

#[test]
fn the_key_of_a_token_is_in_the_set_and_public() {
    let key_set = key_set();
    let header = part(&token(&key_set), 0);
    let id = header["kid"].as_str().unwrap();

    assert!(key_set.contains(id));
    assert!(!key_set.contains("another"));
    let public = serde_json::to_value(key_set.public(at(1000))).unwrap();
    assert_eq!(public["keys"].as_array().unwrap().len(), 1);
    assert_eq!(public["keys"][0]["kid"], id);
}

/// Such as an ID token that the platform's key signs.
#[test]
fn a_token_of_another_type_is_rejected() {
    let private_key = SigningKey::generate().unwrap();
    let key_set = key_set_of(&[(&private_key, 0)], ISSUER);
    let claims = key_set.verify(&token(&key_set), at(1000)).unwrap();
    let encoding = EncodingKey::from_ed_der(&private_key);
    for (typ, is_accepted) in [
        (Some("at+jwt"), true),
        (Some("AT+JWT"), true),
        (Some("application/at+jwt"), true),
        (Some("JWT"), false),
        (None, false),
    ] {
        let header = Header {
            typ: typ.map(str::to_owned),
            kid: Some(key_set.keys[0].0.id.clone()),
            ..Header::new(ALGORITHM)
        };
        let token = jsonwebtoken::encode(&header, &claims, &encoding).unwrap();

        let verified = key_set.verify(&token, at(1000));

        let expected = is_accepted.then(|| claims.clone()).ok_or(Error::Invalid);
        assert_eq!(verified, expected, "{typ:?}");
    }
}
