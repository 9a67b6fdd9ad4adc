//! Commands that are repeated with their idempotency keys.

use jiff::SignedDuration;
use proto::{
    CancelDeliveryRequest, CompleteTaskRequest, Delivery, ReopenTaskRequest, RescheduleTaskRequest,
    deliveries_client::DeliveriesClient, delivery, iri,
};
use serde_json::json;
use tonic::Code;

use super::{Dispatch, Step, events, moved};
use crate::harness::{
    Platform,
    assertions::{assert_violations, json_ld},
    draft, grpc, iri,
};

on_both_databases! {
    /// "A repeated command gets its first response, whatever happened since, a refusal too."
    async fn a_repeated_command_gets_its_first_response(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let delivery = client.create_delivery(draft()).await;
        let name = iri::name(iri(&delivery["pickup"])).to_owned();
        let idempotency = |key: &str| {
            Some(proto::Idempotency { key: key.to_owned(), request_hash: vec![7; 32] })
        };
        let complete = async |key: &str| {
            let request = CompleteTaskRequest { name: name.clone(), idempotency: idempotency(key), ..Default::default() };
            let request = grpc::with_token(&dispatch.token, request);
            dispatch.tasks.clone().complete_task(request).await
        };
        let reopen = async |key: &str| {
            let request = ReopenTaskRequest { name: name.clone(), idempotency: idempotency(key), ..Default::default() };
            let request = grpc::with_token(&dispatch.token, request);
            dispatch.tasks.clone().reopen_task(request).await
        };

        let refused = reopen("too early").await.unwrap_err();
        let completed = complete("first").await.unwrap();
        assert!(completed.metadata().get(proto::IDEMPOTENT_REPLAYED).is_none());
        reopen("now").await.unwrap();
        platform.advance(SignedDuration::from_mins(1));

        let repeated = complete("first").await.unwrap();
        assert!(repeated.metadata().get(proto::IDEMPOTENT_REPLAYED).is_some());
        assert_eq!(repeated.into_inner(), completed.into_inner());
        let refused_again = reopen("too early").await.unwrap_err();
        assert_eq!(refused_again.code(), Code::FailedPrecondition);
        assert_eq!(refused_again.message(), refused.message());
        let path = format!("{}/done", iri(&delivery["pickup"]));
        let board = platform.dispatch_board().await;
        for replayed in [false, true] {
            let request = board.request(hyper::Method::PUT, &path).header("idempotency-key", "phone");
            let response = board.send(request, "").await;
            assert_eq!(json_ld(&response, 200)["status"], "DONE");
            assert_eq!(response.headers.contains_key("idempotent-replayed"), replayed);
        }
        let expected = ["picked", "reopened", "picked"];
        assert_eq!(events(&client, 3).await, expected);
    }

    /// Of a shop over REST: a refusal, too, and a cancellation that dispatch has undone since.
    async fn a_repeated_cancellation_gets_its_first_response(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let delivery = client.create_delivery(draft()).await;
        let path = iri(&delivery);
        let cancel = async |key: &str| {
            let request = client.request(hyper::Method::DELETE, path).header("idempotency-key", key);
            client.send(request, "").await
        };
        let undo = async || {
            let pickup = json_ld(&client.get(iri(&delivery["pickup"])).await, 200);
            let request = RescheduleTaskRequest { both: true, ..moved(&pickup, 1) };
            dispatch.reschedule(request).await.unwrap();
        };
        dispatch.take(Step::Start, &delivery["pickup"]).await.unwrap();

        let refused = cancel("too late").await;
        undo().await;
        let refused_again = cancel("too late").await;
        let cancelled = cancel("now").await;
        undo().await;
        let cancelled_again = cancel("now").await;

        assert_eq!((refused.status, refused_again.status), (409, 409));
        assert_eq!(refused_again.json["detail"], refused.json["detail"]);
        assert_eq!(refused_again.json["code"], "task_state");
        for (response, is_replayed) in [(&cancelled, false), (&cancelled_again, true)] {
            assert_eq!((response.status, response.body.len()), (204, 0));
            assert_eq!(response.headers.contains_key("idempotent-replayed"), is_replayed);
        }
        let after = json_ld(&client.get(path).await, 200);
        assert_eq!((&after["state"], &after["cancelledAt"]), (&json!("created"), &json!(null)));
        let expected = ["started", "rescheduled", "cancelled", "rescheduled"];
        assert_eq!(events(&client, 4).await, expected);
        assert_violations(&cancel("é").await, &["Idempotency-Key"]);
    }

    /// Of dispatch over gRPC, with the couriers and the store that it sees.
    async fn a_repeated_cancellation_of_dispatch_gets_its_first_message(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let (channel, _) = platform.connect(&["admin"]).await;
        let delivery = client.create_delivery(draft()).await;
        dispatch.take(Step::Start, &delivery["pickup"]).await.unwrap();
        let cancel = async |key: &str| {
            let request = CancelDeliveryRequest {
                name: iri::name(iri(&delivery)).to_owned(),
                idempotency: Some(proto::Idempotency { key: key.to_owned(), request_hash: vec![7; 32] }),
                ..Default::default()
            };
            let request = grpc::with_token(&dispatch.token, request);
            DeliveriesClient::new(channel.clone()).cancel_delivery(request).await.unwrap()
        };

        let first = cancel("k").await;
        platform.advance(SignedDuration::from_mins(1));
        let again = cancel("k").await;
        let unchanged = cancel("l").await;

        let is_replayed = |response: &tonic::Response<Delivery>| {
            response.metadata().contains_key(proto::IDEMPOTENT_REPLAYED)
        };
        assert_eq!([&first, &again, &unchanged].map(is_replayed), [false, true, false]);
        let first = first.into_inner();
        assert_eq!((first.state(), &*first.store), (delivery::State::Cancelled, &*platform.store));
        assert_eq!(again.into_inner(), first);
        assert_eq!(unchanged.into_inner(), first);
    }
}
