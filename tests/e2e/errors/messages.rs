//! The whole bodies of the errors that a developer meets first: each message says what to send instead.

use hyper::{Method, Request, header::AUTHORIZATION};
use serde_json::{Value, json};

use super::{UNKNOWN_ID, draft, iri};
use crate::harness::{Mismatches, Platform, Response};

/// The error body with this code, title and message.
fn error(
    platform: &Platform,
    response: &Response,
    (code, title, message): (&str, &str, &str),
) -> Value {
    json!({
        "@context": "/api/contexts/Error",
        "@type": "hydra:Error",
        "hydra:title": "An error occurred",
        "hydra:description": message,
        "type": format!("{}/errors/{code}", platform.base_url),
        "title": title,
        "status": response.status,
        "detail": message,
        "code": code,
        "retryable": false,
        "requestId": response.header("x-request-id"),
    })
}

/// The error body with one violation.
fn violation(
    platform: &Platform,
    response: &Response,
    (path, code, message): (&str, &str, &str),
) -> Value {
    let line = format!("{path}: {message}");
    let invalid = ("validation_failed", "Invalid request", line.as_str());
    let mut body = error(platform, response, invalid);
    body["@context"] = json!("/api/contexts/ConstraintViolationList");
    body["@type"] = json!("ConstraintViolationList");
    body["violations"] = json!([{ "propertyPath": path, "message": message, "code": code }]);
    body
}

on_both_databases! {
    async fn a_message_says_what_to_send_instead(platform: &Platform) {
        let client = platform.client().await;
        let delivery = client.create_delivery(draft()).await;
        let encoded = iri(&delivery).replace('/', "%2F");
        let mut mismatches = Mismatches::default();

        let missing = ("token_missing", "No access token");
        let bearer = "Authorization must start with \"Bearer \", followed by the access token";
        for authorization in [client.token().to_owned(), format!("Token {}", client.token())] {
            let request = Request::get(client.url("/api/me")).header(AUTHORIZATION, authorization);
            let response = client.send(request, "").await;
            let expected = error(platform, &response, (missing.0, missing.1, bearer));
            mismatches.check_eq(bearer, &response.json, &expected);
            let challenge = response.header("www-authenticate");
            mismatches.check_eq(bearer, challenge, "Bearer realm=\"delivery\"");
        }
        let not_found = |message| ("not_found", "Not found", message);
        let not_allowed = "the method must be one of GET, HEAD, DELETE, OPTIONS; \
                           a delivery is not changed: cancel it by DELETE, and create another";
        let unknown = format!("deliveries/{UNKNOWN_ID} does not exist");
        for (method, path, expected) in [
            (Method::GET, "/api/delivery", not_found("there is no such path; see /api/docs")),
            (Method::GET, &*format!("/api/deliveries/{encoded}"), not_found("use the id alone, not the whole @id")),
            (Method::DELETE, &*format!("/api/deliveries/{encoded}"), not_found("use the id alone, not the whole @id")),
            (Method::GET, &*format!("/api/deliveries/{UNKNOWN_ID}"), not_found(&unknown)),
            (Method::PATCH, iri(&delivery), ("method_not_allowed", "Method not allowed", not_allowed)),
        ] {
            let response = client.send(client.request(method, path), "").await;
            let expected = error(platform, &response, expected);
            mismatches.check_eq(path, &response.json, &expected);
        }
        for (path, expected) in [
            ("/api/webhooks?limit=5", ("limit", "unknown_parameter", "is unknown; the parameters are itemsPerPage, page, order[id]")),
            ("/api/deliveries?status=todo", ("status", "unknown_value", "must be TODO or DONE, not \"todo\"")),
            ("/api/deliveries?cursor=2", ("cursor", "invalid_cursor", "is not a cursor of this list; use the links in hydra:view unchanged")),
        ] {
            let response = client.get(path).await;
            mismatches.check_eq(path, &response.json, &violation(platform, &response, expected));
        }
        for (member, value, expected) in [
            ("weight", json!(2.5), ("dropoff.weight", "wrong_type", "must be a whole number, not 2.5")),
            ("packages", json!([{ "type": "M" }]), ("dropoff.packages[0].quantity", "required", "is required: a whole number from 1 to 10000")),
            ("address", json!("Paris"), ("dropoff.address", "address_unclear", "found only Paris: add or correct the street and house number")),
            ("address", json!("1 Rue Zzyzx, 75004 Paris"), ("dropoff.address", "address_unclear", "found only Paris: add or correct the street and house number")),
            ("before", json!("asap"), ("dropoff.before", "invalid_time", "not understood: \"asap\"; write a time such as 2026-11-25 17:30, tomorrow 17:30 or +2h")),
            ("timeSlot", json!("/api/time_slots/1"), ("dropoff.timeSlot", "invalid_time_slot", "\"/api/time_slots/1\" is not a time slot: send the value of one of the choices of GET /api/time_slots/choices")),
            ("before", json!("03/12/2020"), ("dropoff.before", "invalid_time", "\"03/12/2020\" is ambiguous: write 2020-12-03 or 2020-03-12")),
        ] {
            let mut draft = draft();
            draft["dropoff"][member] = value;
            let response = client.post("/api/deliveries", draft).await;
            mismatches.check_eq(member, &response.json, &violation(platform, &response, expected));
        }
        let scope = [("grant_type", "client_credentials"), ("scope", "deliveries,tasks")];
        let response = platform.anonymous_client().request_token(&platform.demo_client, &scope).await;
        let message = "this client is not permitted the scope 'deliveries,tasks'; separate scopes with spaces; \
                       its scopes are deliveries, tasks";
        let expected = json!({ "error": "invalid_scope", "error_description": message, "message": message });
        mismatches.check_eq("scope", &response.json, &expected);
        mismatches.assert_none();
    }
}
