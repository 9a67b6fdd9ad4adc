//! Commands that are repeated with their idempotency keys.

use jiff::SignedDuration;
use proto::{CompleteTaskRequest, ReopenTaskRequest, iri};
use tonic::Code;

use super::{Dispatch, events};
use crate::harness::{Platform, assertions::json_ld, draft, grpc, iri};

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
}
