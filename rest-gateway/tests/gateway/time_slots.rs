//! `GET /api/time_slots/choices` (specification, "Time slot choices").

use http::Method;
use proto::{ListTimeSlotChoicesRequest, ListTimeSlotChoicesResponse, TimeSlotChoice};
use serde_json::json;

use crate::harness::{
    Platform,
    samples::{NOON, instant},
};

#[tokio::test]
async fn choices_are_utc_intervals_with_labels_in_the_requested_language() {
    let platform = Platform::start().await;
    platform.core.will_respond(ListTimeSlotChoicesResponse {
        choices: vec![TimeSlotChoice {
            start_time: instant(NOON),
            end_time: instant(NOON + 7200),
            label: "Aujourd'hui entre 12:00 et 14:00".to_owned(),
        }],
        language: "fr".to_owned(),
    });

    let request = platform
        .client
        .request(Method::GET, "/api/time_slots/choices")
        .header("accept-language", "fr")
        .header("accept-language", "en;q=0.5");
    let reply = platform.client.send(request, "").await;

    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-language"), Some("fr"));
    assert_eq!(
        reply.json(),
        json!({
            "@context": "/api/contexts/TimeSlotChoices",
            "@id": "/api/time_slots/choices",
            "@type": "TimeSlotChoices",
            "choices": [{
                "@type": "TimeSlotChoice",
                "value": "2020-04-02T10:00:00Z/2020-04-02T12:00:00Z",
                "label": "Aujourd'hui entre 12:00 et 14:00",
            }],
        })
    );
    assert_eq!(
        platform.core.received::<ListTimeSlotChoicesRequest>(),
        ListTimeSlotChoicesRequest {
            name: String::new(),
            accept_language: "fr, en;q=0.5".to_owned(),
            store: String::new(),
        }
    );
}
