//! What commands report for the history, and what is not recorded.

use jiff::SignedDuration;
use proto::{CompleteTaskRequest, FailTaskRequest, Report};
use tonic::Code;
use tonic_types::StatusExt as _;

use super::{
    Dispatch, Step,
    history::{complete, history, name, names, report},
};
use crate::harness::{Platform, draft, grpc};

on_both_databases! {
    /// A repetition, also with other times, a command that changes nothing, and a refused one.
    async fn what_changes_nothing_is_not_in_the_history(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let delivery = client.create_delivery(draft()).await;
        let pickup = &delivery["pickup"];
        let done = |key: &str, sent: &str| CompleteTaskRequest {
            name: name(pickup),
            idempotency: Some(proto::Idempotency { key: key.to_owned(), request_hash: vec![7; 32] }),
            notes: key.to_owned(),
            report: report("10:59:00", Some(sent)),
            ..Default::default()
        };

        let first = complete(&dispatch, done("first", "10:59:30")).await.unwrap();
        for (key, sent) in [("first", "10:59:40"), ("another", "10:59:50")] {
            assert_eq!(complete(&dispatch, done(key, sent)).await.unwrap(), first, "{key}");
        }
        dispatch.take(Step::Complete, pickup).await.unwrap();
        dispatch.take(Step::Start, pickup).await.unwrap_err();
        dispatch.take(Step::Fail("OTHER"), pickup).await.unwrap_err();
        dispatch.take(Step::Reopen, pickup).await.unwrap();
        assert_eq!(complete(&dispatch, done("first", "11:00:00")).await.unwrap(), first);

        assert_eq!(names(&dispatch, pickup).await, ["created", "done", "reopened"]);
        assert_eq!(history(&dispatch, pickup).await[1].notes, "first");
        assert_eq!(names(&dispatch, &delivery["dropoff"]).await, ["created"]);
    }

    /// Each is of a task that is created a minute after the one before, and completed a minute later.
    async fn absurd_times_are_clamped_or_ignored_and_never_refused(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let time = |seconds, nanos| Some(prost_types::Timestamp { seconds, nanos });
        let start = platform.now().as_second();
        for (occurred_time, sent_time, expected, is_clamped) in [
            (time(i64::MIN, 0), None, start, true),
            (time(0, 0), None, start + 60, true),
            (time(i64::MAX, 0), None, start + 180, true),
            (time(start + 190, i32::MAX), None, start + 190, false),
            (time(start + 250, 0), time(i64::MAX, 0), start + 250, false),
            // By a clock that is 10 s behind.
            (time(start + 310, 0), time(start + 350, -1), start + 320, false),
        ] {
            let delivery = client.create_delivery(draft()).await;
            platform.advance(SignedDuration::from_mins(1));
            let request = CompleteTaskRequest {
                name: name(&delivery["pickup"]),
                report: Some(Report { occurred_time, sent_time, ..Report::default() }),
                ..Default::default()
            };

            complete(&dispatch, request).await.unwrap();

            let event = &history(&dispatch, &delivery["pickup"]).await[1];
            assert_eq!(event.occurred_time.unwrap().seconds, expected, "{occurred_time:?}");
            assert_eq!(event.occurred_time_clamped, is_clamped, "{occurred_time:?}");
        }
    }

    async fn texts_that_are_too_long_or_not_readable_are_refused_together(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let delivery = client.create_delivery(draft()).await;
        let pickup = &delivery["pickup"];
        let request = |notes: &str, contact_name: &str| CompleteTaskRequest {
            name: name(pickup),
            notes: notes.to_owned(),
            contact_name: contact_name.to_owned(),
            ..Default::default()
        };

        for (notes, contact_name, reasons) in [
            ("é".repeat(2001), "\u{7}".to_owned(), ["TOO_LONG", "CONTROL_CHARACTER"]),
            ("a\u{202e}b".to_owned(), "é".repeat(201), ["CONTROL_CHARACTER", "TOO_LONG"]),
        ] {
            let refused = complete(&dispatch, request(&notes, &contact_name)).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument);
            let violations = refused.get_details_bad_request().unwrap().field_violations;
            let found: Vec<_> = violations.iter().map(|violation| (&*violation.field, &*violation.reason)).collect();
            assert_eq!(found, [("notes", reasons[0]), ("contact_name", reasons[1])]);
        }
        let fail = FailTaskRequest {
            name: name(pickup),
            reason: "not a code".to_owned(),
            notes: "é".repeat(2001),
            ..Default::default()
        };
        let refused = dispatch.tasks.clone().fail_task(grpc::with_token(&dispatch.token, fail)).await.unwrap_err();
        let violations = refused.get_details_bad_request().unwrap().field_violations;
        assert_eq!(violations.len(), 2, "{violations:?}");
        assert_eq!(names(&dispatch, pickup).await, ["created"]);
        let (notes, contact_name) = ("é".repeat(2000), "é".repeat(200));
        complete(&dispatch, request(&notes, &contact_name)).await.unwrap();
        let done = &history(&dispatch, pickup).await[1];
        assert_eq!((&done.notes, &done.contact_name), (&notes, &contact_name));
    }
}
