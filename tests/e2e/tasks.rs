//! Tasks: polling, and who reads and completes them ("Task").

use hyper::{
    Request,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use jiff::SignedDuration;
use serde_json::json;

use crate::harness::{Mismatches, Platform, iri, short_draft as draft};

on_both_databases! {
    async fn a_client_polls_its_task_until_it_is_done(platform: &Platform) {
        let client = platform.client().await;
        let delivery = client.create_delivery(draft()).await;
        let dropoff = iri(&delivery["dropoff"]);

        let before = client.get(dropoff).await;
        assert!(before.header("content-type").starts_with("application/ld+json"));
        let before = before.expect(200);
        let mut embedded = delivery["dropoff"].clone();
        embedded["@context"] = json!("/api/contexts/Task");
        assert_eq!(before, embedded);
        assert_eq!((&before["@type"], &before["status"]), (&json!("Task"), &json!("TODO")));

        platform.advance(SignedDuration::from_mins(5));
        platform.courier().await.complete(dropoff).await;

        let after = client.get(dropoff).await.expect(200);
        let mut expected = before;
        expected["status"] = json!("DONE");
        expected["updatedAt"] = json!("2020-04-02T11:05:00+02:00");
        assert_eq!(after, expected);
        let read = client.get(delivery["@id"].as_str().unwrap()).await.expect(200);
        assert_eq!(read["dropoff"]["status"], "DONE");
        assert_eq!(read["pickup"], delivery["pickup"]);
    }

    async fn a_dispatch_board_reads_any_task_but_no_delivery_and_invalid_completions_are_rejected(
        platform: &Platform
    ) {
        let client = platform.client().await;
        let board = platform.dispatch_board().await;
        let delivery = client.create_delivery(draft()).await;
        let pickup = iri(&delivery["pickup"]);
        let mut mismatches = Mismatches::default();

        let read = board.get(pickup).await.expect(200);
        assert_eq!(read, client.get(pickup).await.expect(200));
        let rejected = board.get(delivery["@id"].as_str().unwrap()).await;
        mismatches.check_error("a delivery", &rejected, 403);
        let done = format!("{pickup}/done");
        for (content_type, body, status) in [
            ("application/ld+json", "{", 400),
            ("application/ld+json", "[]", 400),
            ("application/ld+json", "5", 400),
            ("application/json", "\"DONE\"", 400),
            ("text/plain", "{}", 415),
        ] {
            let request = Request::put(board.url(&done))
                .header(AUTHORIZATION, format!("Bearer {}", board.token()))
                .header(CONTENT_TYPE, content_type);
            let response = board.send(request, body).await;
            mismatches.check_error(format!("{content_type} {body}"), &response, status);
        }
        mismatches.assert_none();

        let state = client.get(pickup).await.expect(200);
        assert_eq!(state["status"], "TODO");
    }
}
