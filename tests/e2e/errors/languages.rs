//! Violations and warnings in the language of `Accept-Language`.

use hyper::{Method, header::ACCEPT_LANGUAGE};
use serde_json::{Value, json};

use super::draft;
use crate::harness::{ApiClient, Mismatches, Platform, Response, assertions::json_ld};

const ASSERT: &str = "/api/deliveries/assert";

/// A request's language, the two titles, and the messages of a weight of 2.5 and a time of "asap".
const BODIES: [[&str; 5]; 6] = [
    [
        "en",
        "An error occurred",
        "Invalid request",
        "must be a whole number, not 2.5",
        "not understood: \"asap\"; write a time such as 2026-11-25 17:30, tomorrow 17:30 or +2h",
    ],
    [
        "fr",
        "Une erreur s'est produite",
        "Requête invalide",
        "doit être un nombre entier, et non 2.5",
        "non compris : \"asap\" ; écrire par exemple 2026-11-25 17:30, demain 17:30 ou +2h",
    ],
    [
        "de",
        "Ein Fehler ist aufgetreten",
        "Ungültige Anfrage",
        "muss eine ganze Zahl sein, nicht 2.5",
        "nicht verstanden: \"asap\"; zum Beispiel 2026-11-25 17:30, morgen 17:30 oder +2h schreiben",
    ],
    [
        "es",
        "Se ha producido un error",
        "Solicitud no válida",
        "debe ser un número entero, no 2.5",
        "no se entiende: \"asap\"; escribir por ejemplo 2026-11-25 17:30, mañana 17:30 o +2h",
    ],
    [
        "it",
        "Si è verificato un errore",
        "Richiesta non valida",
        "deve essere un numero intero, non 2.5",
        "non compreso: \"asap\"; scrivere ad esempio 2026-11-25 17:30, domani 17:30 o +2h",
    ],
    [
        "nl",
        "Er is een fout opgetreden",
        "Ongeldig verzoek",
        "moet een geheel getal zijn, niet 2.5",
        "niet begrepen: \"asap\"; schrijf bijvoorbeeld 2026-11-25 17:30, tomorrow 17:30 of +2h",
    ],
];

/// Members of a dropoff, or parts of a whole body, that cause violations: those of `before` in the first
/// group, then of `timeSlot`, then of the others.
const TIMES: &[&str] = &[
    "asap",
    "tomorrow 13h75",
    "+2",
    "10:00 11:00",
    "tomorrow 13:00 friday monday",
    "10:00-11:00",
    "03/12/2020",
    "2h",
    "mar 18:00",
    "10 ago",
    "at 5",
    "by 2030",
    "30-11-26 18:00",
    "07.12.26",
    "2030",
    "5 dec 2050",
    "december",
    "5 friday",
    "12:30 am montag",
    "tomorrow evening",
    "tomorrow 10:00+15:00",
    "10:00 IST",
    "2020-02-30 10:00",
    "tomorrow monday 10:00",
    "saturday 2020-04-03",
    "2045-01-01 10:00",
    "1999-01-01 10:00",
    "99999999999999 days",
];
const SLOTS: &[&str] = &[
    "tomorrow",
    "/api/time_slots/1",
    "2020-02-30 10:00-11:00",
    "2020-04-03 10:00-25:00",
    "2020-04-03 11:00-11:00",
    "2020-04-03 12:00-11:00",
    "2020-03-29 02:00-02:30",
    "2020-04-03T10:00:00/2020-04-03T13:00:00Z",
    "2020-04-03T10:00:00+15:00/2020-04-03T13:00:00Z",
    "2020-04-03T10:00:00Z/x",
    "2020-04-03T10:00:00.1Z/2020-04-03T10:00:00.2Z",
];
const OTHERS: &[&str] = &[
    r#"{"dropoff": {"weight": 100000001, "packages": [{"type": "XXL", "quantity": 0}]}}"#,
    r#"{"dropoff": {"address": {"latLng": [91, 181]}, "packages": [{}]}}"#,
    r#"{"dropoff": {"address": {"latLng": [2.35, 48.85]}}}"#,
    r#"{"dropoff": {"address": {"latLng": 5}}, "pickup": {"address": {"geo": 5}}}"#,
    r#"{"dropoff": {"address": {"postalCode": "75004"}}, "pickup": {"address": {"postalCode": "75004"}}}"#,
    r#"{"dropoff": {"address": {"streetAddress": "Paris", "addressCountry": "France", "telephone": "1"}}}"#,
    r#"{"dropoff": {"address": {"streetAddress": "Xyzzy"}, "comments": "a\u0000b", "tags": [1, null]}}"#,
    r#"{"dropoff": {"address": "12345 Rue de Rivoli, 75004 Paris", "metadata": {"a\nb": "c"}}}"#,
    r#"{"dropoff": {"address": "Rue de Rivoli, Paris"}, "retailPrice": "/api/retail_prices/1"}"#,
    r#"{"dropoff": {"address": "48 Rue de Rivoli, 75004 Lyon"}, "pickup": {"before": "tomorrow 12:00", "after": "tomorrow 13:00"}}"#,
    r#"{"dropoff": {"address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 12:00"}, "pickup": {"before": "tomorrow 13:00"}}"#,
    r#"{"dropoff": {"tags": "TAGS"}, "dropof": {}, "x": 1}"#,
    r#"{"dropoff": 1, "dropoff": [1], "pickup": "x", "externalReference": 5}"#,
    r#"{"dropoff": {"before": "x"#,
    r#"{"dropoff": {"before": "x" "y"}}"#,
    r#"{"dropoff": {"weight": 1e400}}"#,
    "[]",
    "",
];
const QUERIES: &[&str] = &[
    "/api/deliveries?statsu=TODO&cursor=x&itemsPerPage=0&page=2&status=todo&status=x",
    "/api/deliveries?order[id]=x&exists[cancelledAt]=x&externalReference=&createdAt[after]=",
    "/api/deliveries?itemsPerPage=x&status=x&state=x",
    "/api/webhooks?itemsPerPage=101",
    "/api/events?after=x",
    "/api/events?after=-1",
    "/api/events?after=5",
    "/api/me?x=1",
];

/// A wrong request in a language, or without `Accept-Language`.
async fn send(
    client: &ApiClient,
    language: Option<&str>,
    path: &str,
    body: Option<&str>,
) -> Response {
    let method = body.map_or(Method::GET, |_| Method::POST);
    let mut request = client.request(method, path);
    if let Some(language) = language {
        request = request.header(ACCEPT_LANGUAGE, language);
    }
    client
        .send(request, body.unwrap_or_default().to_owned())
        .await
}

/// The values of `Vary`, in one line.
fn vary(response: &Response) -> String {
    let lines = response.headers.get_all("vary").iter();
    let lines: Vec<_> = lines.map(|line| line.to_str().unwrap()).collect();
    lines.join(", ")
}

fn violations_and_warnings(response: &Response) -> Vec<Value> {
    let lists = ["violations", "warnings"].map(|list| response.json[list].as_array().cloned());
    lists.into_iter().flatten().flatten().collect()
}

on_both_databases! {
    /// With the same `propertyPath` and `code` in each.
    async fn violations_are_in_the_language_that_the_client_accepts(platform: &Platform) {
        let client = platform.client().await;
        let mut draft = draft();
        draft["dropoff"]["weight"] = json!(2.5);
        draft["dropoff"]["before"] = json!("asap");
        let draft = draft.to_string();
        let mut mismatches = Mismatches::default();

        for [language, hydra_title, title, weight, before] in BODIES {
            for path in ["/api/deliveries", ASSERT, "/api/retail_prices/calculate"] {
                let response = send(&client, Some(language), path, Some(&draft)).await;

                let detail = format!("dropoff.weight: {weight}\ndropoff.before: {before}");
                let expected = json!({
                    "@context": "/api/contexts/ConstraintViolationList",
                    "@type": "ConstraintViolationList",
                    "hydra:title": hydra_title,
                    "hydra:description": detail,
                    "type": format!("{}/errors/validation_failed", platform.base_url),
                    "title": title,
                    "status": 400,
                    "detail": detail,
                    "code": "validation_failed",
                    "retryable": false,
                    "requestId": response.header("x-request-id"),
                    "violations": [
                        { "propertyPath": "dropoff.weight", "message": weight, "code": "wrong_type" },
                        { "propertyPath": "dropoff.before", "message": before, "code": "invalid_time" },
                    ],
                });
                mismatches.check_eq(language, &response.json, &expected);
                mismatches.check_eq(language, response.header("content-language"), language);
                mismatches.check_eq(language, vary(&response).contains("accept-language"), true);
            }
        }
        mismatches.assert_none();
    }

    async fn violations_are_in_english_if_the_client_accepts_no_language_of_the_platform(platform: &Platform) {
        let client = platform.client().await;
        let [.., english] = BODIES[0];
        let mut draft = draft();
        draft["dropoff"]["before"] = json!("asap");
        let draft = draft.to_string();

        for language in [None, Some("pl"), Some("*"), Some(""), Some("en, de;q=0.9"), Some("de;q=0"), Some(";;;q=,")] {
            let response = send(&client, language, ASSERT, Some(&draft)).await;

            assert_eq!(response.json["violations"][0]["message"], english, "{language:?}");
            assert_eq!(response.header("content-language"), "en");
            assert!(vary(&response).contains("accept-language"));
        }
        let response = send(&client, Some("de"), "/api/deliveries/1", None).await;
        assert_eq!((response.status, response.header("content-language")), (404, ""));
        assert!(!vary(&response).contains("accept-language"));
    }

    /// The stored response is the delivery: the client's language is applied to it each time.
    async fn warnings_are_in_the_language_that_each_request_accepts(platform: &Platform) {
        let client = platform.client().await;
        let mut draft = draft();
        draft["dropoff"]["weigth"] = json!(1500);
        draft["dropoff"]["before"] = json!("2020-04-02 10:59");
        let draft = draft.to_string();
        let create = async |language| {
            let request = client.request(Method::POST, "/api/deliveries");
            let request = request.header("idempotency-key", "1").header(ACCEPT_LANGUAGE, language);
            client.send(request, draft.clone()).await
        };
        let warnings = |unknown, past| json!([
            { "propertyPath": "dropoff.weigth", "message": unknown, "code": "unknown_member" },
            { "propertyPath": "dropoff.before", "message": past, "code": "past_time" },
        ]);
        let german = warnings(
            "wird ignoriert: dieses Feld gibt es nicht; ist weight gemeint?",
            "liegt in der Vergangenheit: Ende war 2020-04-02T10:59:00+02:00",
        );
        let english = warnings(
            "is ignored: there is no such member; did you mean weight?",
            "is in the past: it ended at 2020-04-02T10:59:00+02:00",
        );

        let preview = send(&client, Some("de"), ASSERT, Some(&draft)).await;
        let created = create("de").await;
        let repeated = create("de").await;
        let in_english = create("en").await;

        assert_eq!(json_ld(&preview, 200)["warnings"], german);
        let first = json_ld(&created, 201);
        assert_eq!(first["warnings"], german);
        assert_eq!(repeated.body, created.body);
        for (response, language) in [(&preview, "de"), (&created, "de"), (&repeated, "de"), (&in_english, "en")] {
            assert_eq!(response.header("content-language"), language);
            assert!(vary(response).contains("accept-language"));
        }
        let mut expected = first;
        expected["warnings"] = english;
        assert_eq!(json_ld(&in_english, 201), expected);
        let valid = super::draft().to_string();
        let without_warnings = send(&client, Some("de"), ASSERT, Some(&valid)).await;
        assert_eq!(without_warnings.header("content-language"), "");
        assert!(!vary(&without_warnings).contains("accept-language"));
    }

    /// Every response in English is checked by the harness too.
    async fn every_message_is_translated_and_nothing_else(platform: &Platform) {
        let client = platform.client().await;
        let webhook = |url: &str, event: &str| json!({"url": url, "event": event}).to_string();
        let of_dropoff = |member: &str, text: &str| {
            let mut draft = draft();
            draft["dropoff"][member] = json!(text);
            (ASSERT, Some(draft.to_string()))
        };
        let mut requests: Vec<_> = TIMES.iter().map(|text| of_dropoff("before", text)).collect();
        requests.extend(SLOTS.iter().map(|text| of_dropoff("timeSlot", text)));
        requests.extend(OTHERS.iter().map(|body| (ASSERT, Some(body.replace("TAGS", &"a ".repeat(51))))));
        requests.extend(QUERIES.iter().map(|path| (*path, None)));
        requests.push(("/api/retail_prices/calculate?tax=none", Some(draft().to_string())));
        for url in ["x", "https://", "https://a b", "https://1.2.3.256", "http://u:p@a.example", "https://a.example#x", "https://10.0.0.1", "https://a.example:1", "https://[::1%25a]/", "https://a..example", "https://a.example:x"] {
            requests.push(("/api/webhooks", Some(webhook(url, "delivery.delivered"))));
        }
        let mut mismatches = Mismatches::default();
        let mut count = 0;

        for (path, body) in requests {
            let english = send(&client, None, path, body.as_deref()).await;
            let english_violations = violations_and_warnings(&english);
            mismatches.check_eq(format!("{path} {body:?}"), english_violations.is_empty(), false);
            count += english_violations.len();
            for [language, ..] in &BODIES[1..] {
                let response = send(&client, Some(language), path, body.as_deref()).await;
                let translated = violations_and_warnings(&response);
                mismatches.check_eq(path, translated.len(), english_violations.len());
                for (english, translated) in english_violations.iter().zip(&translated) {
                    for member in ["propertyPath", "code"] {
                        mismatches.check_eq(language, &translated[member], &english[member]);
                    }
                    let is_translated = translated["message"] != english["message"];
                    mismatches.check(language, is_translated, format!("{english} is not translated"));
                }
            }
        }
        assert!(count > 80, "{count}");
        mismatches.assert_none();
    }

    async fn what_a_translated_message_says_to_write_is_understood(platform: &Platform) {
        let client = platform.client().await;
        let mut mismatches = Mismatches::default();

        for text in [
            "demain 17:30", "morgen 17:30", "mañana 17:30", "domani 17:30",
            "mardi 18:00", "Dienstag 18:00", "martes 18:00", "martedì 18:00",
            "8 mars 18:00", "8 März 18:00", "8 marzo 18:00",
            "10 août 18:00", "10. August 18:00", "10 de agosto 18:00", "10 agosto 18:00",
            "10 août", "10. August", "10 de agosto", "10 agosto",
            "il y a 10 jours", "vor 10 Tagen", "hace 10 días", "10 giorni fa",
        ] {
            let mut draft = draft();
            draft["dropoff"]["before"] = json!(text);
            let response = client.post(ASSERT, draft).await;
            mismatches.check_eq(text, response.status, 200);
        }
        mismatches.assert_none();
    }
}
