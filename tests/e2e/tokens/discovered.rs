//! The metadata of the authorization server (RFC 8414) leads to a token and its keys.

use serde_json::json;

use super::{FORM, GRANT, post};
use crate::harness::{Database, Platform, token::decoded};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_oauth_client_discovers_where_to_get_a_token_and_the_key_that_verifies_it() {
    let platform = Platform::start(Database::sqlite()).await;
    let anonymous = platform.anonymous_client();
    let base = anonymous.url("");

    let metadata = anonymous
        .get("/.well-known/oauth-authorization-server")
        .await;

    assert_eq!(metadata.status, 200);
    assert_eq!(metadata.header("content-type"), "application/json");
    assert_eq!(
        metadata.json,
        json!({
            "issuer": base,
            "token_endpoint": format!("{base}/oauth2/token"),
            "jwks_uri": format!("{base}/oauth2/jwks"),
            "scopes_supported": ["courier", "deliveries", "dispatch", "dispatch:read", "tasks", "tasks:all"],
            "response_types_supported": [],
            "grant_types_supported": ["client_credentials"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "service_documentation": format!("{base}/api/docs"),
        })
    );

    let path = |member: &str| {
        let url = metadata.json[member].as_str().unwrap();
        url.strip_prefix(&*base).unwrap().to_owned()
    };
    let client = &platform.demo_client;
    let form = format!(
        "{GRANT}&client_id={}&client_secret={}",
        client.api_key, client.api_secret
    );
    let token = post(&anonymous, &path("token_endpoint"), &[FORM], form).await;
    let keys = anonymous.get(&path("jwks_uri")).await;

    let token = token.json["access_token"].as_str().unwrap();
    let [header, claims] = [0, 1].map(|part| decoded(token, part));
    assert_eq!(claims["iss"], metadata.json["issuer"]);
    let known = keys.json["keys"].as_array().unwrap();
    assert!(
        known.iter().any(|key| key["kid"] == header["kid"]),
        "{known:?}"
    );
}
