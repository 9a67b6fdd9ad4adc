//! Violations and warnings about webhooks in the language of `Accept-Language`.

use hyper::{Method, header::ACCEPT_LANGUAGE};
use serde_json::{Value, json};

use super::iri;
use crate::harness::{ApiClient, Mismatches, Platform, Response, assertions::json_ld};

const WEBHOOKS: &str = "/api/webhooks";

const EVENTS: &str = "delivery.completed, delivery.created, delivery.assigned, delivery.started, delivery.picked, \
     delivery.in_transit, delivery.dropped, delivery.failed, delivery.cancelled, delivery.rescheduled, delivery.reopened";

/// A language, the two titles of an error, and the messages of the event `order.created`, of a private
/// address and of a second webhook for the same event and URL.
const MESSAGES: [[&str; 6]; 6] = [
    [
        "en",
        "An error occurred",
        "Invalid request",
        "there is no event \"order.created\"; the events are {events}",
        "has address 10.0.0.1, which is not allowed: use a host on the public internet",
        "gets each event twice: {webhook} is for the same event and url; delete the one that you do not need",
    ],
    [
        "fr",
        "Une erreur s'est produite",
        "Requête invalide",
        "il n'y a pas d'événement \"order.created\" ; les événements sont {events}",
        "a l'adresse 10.0.0.1, qui n'est pas permise : utiliser un hôte de l'internet public",
        "reçoit chaque événement deux fois : {webhook} a le même événement et la même URL ; supprimer celui \
         qui est inutile",
    ],
    [
        "de",
        "Ein Fehler ist aufgetreten",
        "Ungültige Anfrage",
        "es gibt kein Ereignis \"order.created\"; die Ereignisse sind {events}",
        "hat die Adresse 10.0.0.1, die nicht erlaubt ist: einen Host im öffentlichen Internet verwenden",
        "erhält jedes Ereignis doppelt: {webhook} hat dasselbe Ereignis und dieselbe URL; den nicht \
         benötigten Webhook löschen",
    ],
    [
        "es",
        "Se ha producido un error",
        "Solicitud no válida",
        "no existe el evento \"order.created\"; los eventos son {events}",
        "tiene la dirección 10.0.0.1, que no está permitida: usar un host de la internet pública",
        "recibe cada evento dos veces: {webhook} tiene el mismo evento y la misma URL; eliminar el que no \
         se necesite",
    ],
    [
        "it",
        "Si è verificato un errore",
        "Richiesta non valida",
        "non esiste l'evento \"order.created\"; gli eventi sono {events}",
        "ha l'indirizzo 10.0.0.1, che non è consentito: usare un host della rete Internet pubblica",
        "riceve ogni evento due volte: {webhook} ha lo stesso evento e lo stesso URL; eliminare quello che \
         non serve",
    ],
    [
        "nl",
        "Er is een fout opgetreden",
        "Ongeldig verzoek",
        "er is geen gebeurtenis \"order.created\"; de gebeurtenissen zijn {events}",
        "heeft het adres 10.0.0.1, dat niet is toegestaan: gebruik een host op het openbare internet",
        "krijgt elke gebeurtenis twee keer: {webhook} heeft dezelfde gebeurtenis en URL; verwijder de webhook \
         die niet nodig is",
    ],
];

/// Registers a webhook with an idempotency key in a language.
async fn register(client: &ApiClient, key: &str, language: &str, body: &Value) -> Response {
    let request = client
        .request(Method::POST, WEBHOOKS)
        .header("idempotency-key", key)
        .header(ACCEPT_LANGUAGE, language);
    client.send(request, body.to_string()).await
}

/// Whether the response declares its language, and that it depends on that of the request.
fn declares(response: &Response, language: &str) -> bool {
    let mut vary = response.headers.get_all("vary").iter();
    response.header("content-language") == language && vary.any(|name| name == "accept-language")
}

on_both_databases! {
    async fn the_violations_of_a_webhook_are_in_the_language_that_the_client_accepts(platform: &Platform) {
        let client = platform.client().await;
        let body = json!({ "event": "order.created", "url": "https://10.0.0.1/" });
        let mut mismatches = Mismatches::default();

        for [language, hydra_title, title, event, url, _] in MESSAGES {
            let response = register(&client, language, language, &body).await;

            let event = event.replace("{events}", EVENTS);
            let detail = format!("event: {event}\nurl: {url}");
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
                    { "propertyPath": "event", "message": event, "code": "unknown_event" },
                    { "propertyPath": "url", "message": url, "code": "invalid_url" },
                ],
            });
            mismatches.check_eq(language, &response.json, &expected);
            mismatches.check(language, declares(&response, language), "is not declared");
        }
        mismatches.assert_none();
    }

    /// Also that of a stored response.
    async fn the_warning_of_a_second_webhook_is_in_the_language_that_each_request_accepts(platform: &Platform) {
        let client = platform.client().await;
        let (event, url) = ("delivery.completed", "https://example.com/hook");
        let body = json!({ "event": event, "url": url });
        let first = client.create_webhook(event, url).await;
        let warnings = |message: &str| {
            let message = message.replace("{webhook}", iri(&first));
            json!([{ "propertyPath": "url", "message": message, "code": "duplicate_webhook" }])
        };
        let [.., english] = MESSAGES[0];

        for [language, .., message] in MESSAGES {
            let second = register(&client, language, language, &body).await;
            let repeated = register(&client, language, language, &body).await;
            let in_english = register(&client, language, "en", &body).await;

            let mut expected = json_ld(&second, 201);
            assert_eq!(expected["warnings"], warnings(message));
            assert_eq!(repeated.body, second.body);
            assert!(declares(&second, language) && declares(&in_english, "en"), "{language}");
            expected["warnings"] = warnings(english);
            assert_eq!(json_ld(&in_english, 201), expected);
            client.delete(iri(&expected)).await.expect(204);
        }
    }
}
