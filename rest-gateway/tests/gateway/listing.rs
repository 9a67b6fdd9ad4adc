//! Hydra collections: `GET /api/deliveries` and `GET /api/webhooks`.

use proto::{
    ListDeliveriesRequest, ListDeliveriesResponse, ListWebhooksRequest, ListWebhooksResponse,
    Violation, Webhook, delivery::State, task::Status,
};
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::{ErrorDetails, FieldViolation};

use crate::harness::{
    Platform,
    samples::{ID, NOON, core_status_with, delivery, delivery_json, instant},
};

#[tokio::test]
async fn a_page_links_to_its_neighbours_with_the_same_query() {
    let platform = Platform::start().await;
    let mut member = delivery_json();
    member.as_object_mut().unwrap().remove("@context");
    for (path, next, previous, view) in [
        (
            "/api/deliveries",
            "",
            "",
            json!({
                "@id": "/api/deliveries",
                "@type": "hydra:PartialCollectionView",
                "hydra:first": "/api/deliveries",
            }),
        ),
        (
            "/api/deliveries?cursor=bb",
            "cc",
            "aa",
            json!({
                "@id": "/api/deliveries?cursor=bb",
                "@type": "hydra:PartialCollectionView",
                "hydra:first": "/api/deliveries",
                "hydra:previous": "/api/deliveries?cursor=aa",
                "hydra:next": "/api/deliveries?cursor=cc",
            }),
        ),
        (
            "/api/deliveries?cursor=bb&itemsPerPage=7",
            "cc",
            "",
            json!({
                "@id": "/api/deliveries?itemsPerPage=7&cursor=bb",
                "@type": "hydra:PartialCollectionView",
                "hydra:first": "/api/deliveries?itemsPerPage=7",
                "hydra:next": "/api/deliveries?itemsPerPage=7&cursor=cc",
            }),
        ),
    ] {
        platform.core.will_respond(ListDeliveriesResponse {
            deliveries: vec![delivery()],
            next_page_token: next.to_owned(),
            previous_page_token: previous.to_owned(),
        });

        let reply = platform.client.get(path).await;

        assert_eq!(reply.status, 200);
        assert_eq!(
            reply.json(),
            json!({
                "@context": "/api/contexts/Delivery",
                "@id": "/api/deliveries",
                "@type": "hydra:Collection",
                "hydra:member": [member],
                "hydra:view": view,
                "hydra:search": filters_of_deliveries(),
            })
        );
        assert_eq!(
            platform.core.received::<ListDeliveriesRequest>(),
            ListDeliveriesRequest {
                page_size: path.contains("itemsPerPage").then_some(7),
                page_token: if path.contains("cursor") { "bb" } else { "" }.to_owned(),
                ..ListDeliveriesRequest::default()
            }
        );
    }
}

fn filters_of_deliveries() -> Value {
    let mapping = |variable: &str, property: &str| {
        json!({
            "@type": "IriTemplateMapping",
            "variable": variable,
            "property": property,
            "required": false,
        })
    };
    json!({
        "@type": "hydra:IriTemplate",
        "hydra:template": "/api/deliveries{?externalReference,createdAt[after],createdAt[before],\
            dropoff.before[after],dropoff.before[before],status,state,exists[cancelledAt]}",
        "hydra:variableRepresentation": "BasicRepresentation",
        "hydra:mapping": [
            mapping("externalReference", "externalReference"),
            mapping("createdAt[after]", "createdAt"),
            mapping("createdAt[before]", "createdAt"),
            mapping("dropoff.before[after]", "dropoff.before"),
            mapping("dropoff.before[before]", "dropoff.before"),
            mapping("status", "status"),
            mapping("state", "state"),
            mapping("exists[cancelledAt]", "cancelledAt"),
        ],
    })
}

/// API Platform's Admin sends `page` and `order[id]` with every list request.
#[tokio::test]
async fn links_to_other_pages_have_neither_page_nor_order() {
    let platform = Platform::start().await;
    platform.core.will_respond(ListDeliveriesResponse {
        next_page_token: "cc".to_owned(),
        ..ListDeliveriesResponse::default()
    });

    let reply = platform
        .client
        .get("/api/deliveries?order%5Bid%5D=ASC&page=1&itemsPerPage=10&status=TODO")
        .await;

    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json()["hydra:view"],
        json!({
            "@id": "/api/deliveries?itemsPerPage=10&status=TODO",
            "@type": "hydra:PartialCollectionView",
            "hydra:first": "/api/deliveries?itemsPerPage=10&status=TODO",
            "hydra:next": "/api/deliveries?itemsPerPage=10&status=TODO&cursor=cc",
        })
    );
}

#[tokio::test]
async fn violations_of_pagination_have_the_names_of_query_parameters() {
    let platform = Platform::start().await;
    let violation = |field: &str| FieldViolation {
        field: field.to_owned(),
        description: "is wrong".to_owned(),
        reason: "SOME_REASON".to_owned(),
        localized_message: None,
    };
    platform.core.will_fail(core_status_with(
        Code::InvalidArgument,
        "VALIDATION_FAILED",
        "2 violations",
        ErrorDetails::with_bad_request(vec![violation("page_size"), violation("page_token")]),
    ));

    let reply = platform
        .client
        .get("/api/deliveries?itemsPerPage=ten&cursor=a&cursor=b")
        .await;

    assert_eq!(reply.status, 400);
    assert_eq!(
        reply.json()["violations"],
        json!([
            {"propertyPath": "itemsPerPage", "message": "is wrong", "code": "some_reason"},
            {"propertyPath": "cursor", "message": "is wrong", "code": "some_reason"},
        ])
    );
    let violation = |field: &str, reason: &str, description: &str| Violation {
        field: field.to_owned(),
        description: description.to_owned(),
        reason: reason.to_owned(),
    };
    assert_eq!(
        platform.core.received::<ListDeliveriesRequest>(),
        ListDeliveriesRequest {
            violations: vec![
                violation(
                    "page_size",
                    "WRONG_TYPE",
                    "must be a whole number from 1 to 100"
                ),
                violation("page_token", "REPEATED", "must occur only once"),
            ],
            ..ListDeliveriesRequest::default()
        }
    );
}

/// The parameters have the names of API Platform's filters.
#[tokio::test]
async fn filters_are_sent_to_core_and_kept_in_links_to_other_pages() {
    let platform = Platform::start().await;
    platform.core.will_respond(ListDeliveriesResponse {
        deliveries: vec![],
        next_page_token: "cc".to_owned(),
        previous_page_token: String::new(),
    });
    let query = "externalReference=a+b%26c&createdAt%5Bafter%5D=yesterday\
        &createdAt%5Bbefore%5D=2020-04-02T12%3A00%3A00%2B02%3A00\
        &dropoff.before%5Bafter%5D=today&dropoff.before%5Bbefore%5D=tomorrow\
        &status=DONE&state=in_transit&exists%5BcancelledAt%5D=false";

    let reply = platform
        .client
        .get(&format!("/api/deliveries?cursor=bb&{query}"))
        .await;

    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json()["hydra:view"],
        json!({
            "@id": format!("/api/deliveries?{query}&cursor=bb"),
            "@type": "hydra:PartialCollectionView",
            "hydra:first": format!("/api/deliveries?{query}"),
            "hydra:next": format!("/api/deliveries?{query}&cursor=cc"),
        })
    );
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        platform.core.received::<ListDeliveriesRequest>(),
        ListDeliveriesRequest {
            page_size: None,
            page_token: "bb".to_owned(),
            violations: vec![],
            external_reference: text("a b&c"),
            created_from: text("yesterday"),
            created_until: text("2020-04-02T12:00:00+02:00"),
            dropoff_from: text("today"),
            dropoff_until: text("tomorrow"),
            status: Some(Status::Done.into()),
            state: Some(State::InTransit.into()),
            cancelled: Some(false),
            store: String::new(),
            day: String::new(),
        }
    );
}

#[tokio::test]
async fn unknown_and_malformed_filters_are_violations_with_the_names_of_query_parameters() {
    let platform = Platform::start().await;
    for (query, field, path, reason) in [
        ("my_own=1", "my_own", "my_own", "UNKNOWN_PARAMETER"),
        ("page=2", "page", "page", "OUT_OF_RANGE"),
        (
            "createdAt=today",
            "createdAt",
            "createdAt",
            "UNKNOWN_PARAMETER",
        ),
        (
            "status%5B%5D=TODO",
            "status[]",
            "status[]",
            "UNKNOWN_PARAMETER",
        ),
        ("status=todo", "status", "status", "UNKNOWN_VALUE"),
        ("status=TODO&status=DONE", "status", "status", "REPEATED"),
        ("state=PICKED", "state", "state", "UNKNOWN_VALUE"),
        ("state=picked&state=failed", "state", "state", "REPEATED"),
        ("order%5Bid%5D=up", "order", "order[id]", "UNKNOWN_VALUE"),
        ("itemsPerPage=x", "page_size", "itemsPerPage", "WRONG_TYPE"),
        (
            "exists%5BcancelledAt%5D=",
            "cancelled",
            "exists[cancelledAt]",
            "UNKNOWN_VALUE",
        ),
        (
            "externalReference=",
            "external_reference",
            "externalReference",
            "REQUIRED",
        ),
        (
            "createdAt[after]=a&createdAt[after]=b",
            "created_from",
            "createdAt[after]",
            "REPEATED",
        ),
    ] {
        let mut details = ErrorDetails::new();
        details.add_bad_request_violation(field, "is wrong");
        platform.core.will_fail(core_status_with(
            Code::InvalidArgument,
            "VALIDATION_FAILED",
            "1 violation",
            details,
        ));

        let reply = platform
            .client
            .get(&format!("/api/deliveries?{query}"))
            .await;

        assert_eq!(reply.status, 400, "{query}");
        assert_eq!(
            reply.json()["violations"][0]["propertyPath"],
            path,
            "{query}"
        );
        let request = platform.core.received::<ListDeliveriesRequest>();
        let [found] = &request.violations[..] else {
            panic!("{query}: {:?}", request.violations);
        };
        assert_eq!((&*found.field, &*found.reason), (field, reason), "{query}");
    }
}

#[tokio::test]
async fn all_webhooks_are_listed_without_secrets() {
    let platform = Platform::start().await;
    platform.core.will_respond(ListWebhooksResponse {
        webhooks: vec![Webhook {
            name: format!("webhooks/{ID}"),
            event: "delivery.completed".to_owned(),
            url: "https://shop.example/hook".to_owned(),
            secret: String::new(),
            create_time: instant(NOON),
            ..Webhook::default()
        }],
    });

    let reply = platform.client.get("/api/webhooks").await;

    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({
            "@context": "/api/contexts/Webhook",
            "@id": "/api/webhooks",
            "@type": "hydra:Collection",
            "hydra:member": [{
                "@id": format!("/api/webhooks/{ID}"),
                "@type": "Webhook",
                "id": ID,
                "url": "https://shop.example/hook",
                "event": "delivery.completed",
                "secretOverlapEndsAt": null,
                "enabled": true,
                "disabledAt": null,
                "disabledReason": null,
            }],
            "hydra:totalItems": 1,
            "hydra:view": {"@id": "/api/webhooks", "@type": "hydra:PartialCollectionView"},
        })
    );
    assert_eq!(
        platform.core.received::<ListWebhooksRequest>(),
        ListWebhooksRequest::default()
    );
}
