//! Tasks: polling, and who reads and completes them ("Task").

use hyper::{
    Request,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use jiff::SignedDuration;
use proto::{GetTaskRequest, tasks_client::TasksClient};
use serde_json::json;
use tonic::Code;

use crate::harness::{
    Mismatches, Platform, UNKNOWN_ID, assertions::assert_error, grpc::with_token, iri,
    short_draft as draft,
};

on_both_databases! {
    /// Over REST it is a path without a resource.
    async fn a_text_that_is_no_name_is_an_invalid_argument(platform: &Platform) {
        let (channel, token) = platform.connect(&["tasks:all"]).await;
        let get = async |name: &str| {
            let request = with_token(&token, GetTaskRequest { name: name.to_owned() });
            let rejected = TasksClient::new(channel.clone()).get_task(request).await;
            let status = rejected.err().unwrap();
            (status.code(), status.message().to_owned())
        };
        let upper_case = UNKNOWN_ID.to_uppercase();
        for wrong in ["", "tasks/", "tasks/1", &format!("deliveries/{UNKNOWN_ID}"), &format!("tasks/{upper_case}")] {
            let message = format!("{wrong} does not exist: a name is tasks/<id>, with a UUID in lower case");
            assert_eq!(get(wrong).await, (Code::InvalidArgument, message));
        }
        let unknown = format!("tasks/{UNKNOWN_ID}");
        assert_eq!(get(&unknown).await, (Code::NotFound, format!("{unknown} does not exist")));

        let response = platform.client().await.get("/api/tasks/1").await;

        assert_error(&response, 404);
        assert_eq!(response.json["code"], "not_found");
    }

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
        expected["state"] = json!("DONE");
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
