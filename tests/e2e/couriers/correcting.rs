//! What dispatch corrects in tasks: comments, and the telephone number and the description of the address.

use prost_types::FieldMask;
use proto::{
    Address, Idempotency, ListTasksRequest, Task, TaskEvent, UpdateTaskRequest, task_event::Actor,
};
use serde_json::json;
use tonic::{Code, Status};

use super::{
    Desk, Order, TODAY, assert_refused, assert_unknown, assert_violations, now, on, orders,
};
use crate::harness::{Platform, UNKNOWN_ID, iri, stored_text};

const MASK: [&str; 3] = ["comments", "address.telephone", "address.description"];

/// Texts of a task; those of the mask are its new ones.
fn correction(task: &str, texts: [&str; 3], mask: &[&str]) -> UpdateTaskRequest {
    let [comments, telephone, description] = texts.map(str::to_owned);
    UpdateTaskRequest {
        task: Some(Task {
            name: task.to_owned(),
            comments,
            address: Some(Address {
                telephone: Some(telephone),
                description: Some(description),
                ..Address::default()
            }),
            ..Task::default()
        }),
        update_mask: Some(FieldMask {
            paths: mask.iter().map(|path| (*path).to_owned()).collect(),
        }),
        ..UpdateTaskRequest::default()
    }
}

impl Desk {
    async fn correct(&self, task: &str, texts: [&str; 3], mask: &[&str]) -> Result<Task, Status> {
        self.update_task(correction(task, texts, mask)).await
    }
}

/// A task as it is after a correction at the current time.
fn corrected(before: &Task, after: &Task, texts: [Option<&str>; 3], platform: &Platform) -> Task {
    let [comments, telephone, description] = texts.map(|text| text.map(str::to_owned));
    let address = before.address.clone().unwrap();
    Task {
        comments: comments.unwrap_or_default(),
        address: Some(Address {
            name: after.address.as_ref().unwrap().name.clone(),
            telephone,
            description,
            ..address
        }),
        update_time: now(platform),
        ..before.clone()
    }
}

on_both_databases! {
    async fn dispatch_corrects_the_fields_of_the_mask_and_watchers_get_them(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        let task = &order.dropoff;
        let position = desk.list_tasks(on(TODAY)).await.unwrap().position;
        let mut changes = desk.watch(Some(position), &on(TODAY)).await.unwrap();
        let before = desk.task(task).await;
        platform.advance(jiff::SignedDuration::from_mins(1));
        let texts = [" Ring twice\n", "06 12 34 56 78", "Second floor"];

        let all = desk.correct(task, texts, &MASK).await.unwrap();

        let expected = [Some("Ring twice"), Some("+33612345678"), Some("Second floor")];
        assert_eq!(all, corrected(&before, &all, expected, platform));
        assert_ne!(all.address.as_ref().unwrap().name, before.address.unwrap().name);
        assert_eq!(desk.task(task).await, all);
        loop {
            let change = changes.message().await.unwrap().unwrap();
            let mut seen = change.tasks.iter().filter(|seen| seen.name == *task);
            if seen.any(|seen| (&seen.comments, &seen.address) == (&all.comments, &all.address)) {
                break;
            }
        }
        let event = TaskEvent {
            event: "task:updated".to_owned(),
            create_time: now(platform),
            occurred_time: now(platform),
            actor: Actor::Dispatch.into(),
            api_client: desk.api_client.clone(),
            ..TaskEvent::default()
        };
        assert_eq!(desk.history(task).await[1..], [event]);

        // The same again, and what the mask does not name.
        assert_eq!(desk.correct(task, texts, &MASK).await.unwrap(), all);
        let others = ["Knock", "not a number", ""];
        assert_eq!(desk.correct(task, others, &["address.description"]).await.unwrap().comments, "Ring twice");
        assert_eq!(desk.history(task).await.len(), 3);
        let removed = desk.correct(task, [""; 3], &MASK).await.unwrap();
        let address = removed.address.unwrap();
        assert_eq!((&*removed.comments, address.telephone, address.description), ("", None, None));
        let shop = client.get(&format!("/api/{task}")).await.expect(200);
        assert_eq!((&shop["comments"], &shop["address"]["telephone"]), (&json!(""), &json!(null)));
        let listed = desk.list_tasks(ListTasksRequest::default()).await.unwrap();
        assert_eq!(listed.tasks.len(), 2);
    }

    async fn a_task_of_any_state_is_corrected(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [done, cancelled]: [Order; 2] = orders(&client).await;
        desk.complete(&done.pickup).await;
        client.delete(iri(&cancelled.delivery)).await.expect(204);
        for order in [&done, &cancelled] {
            let before = desk.task(&order.pickup).await;
            let task = desk.correct(&order.pickup, ["For the record", "", ""], &["comments"]).await.unwrap();
            assert_eq!((task.comments.as_str(), task.state()), ("For the record", before.state()));
            assert_eq!(task.state_time, before.state_time);
        }
    }

    async fn all_violations_of_a_correction_are_reported_at_once_and_nothing_changes(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        let task = &order.pickup;
        let before = desk.task(task).await;
        let long = "a".repeat(5001);
        let wide = "\u{1f6b2}".repeat(5000);

        for (texts, mask, fields) in [
            ([&*long, "not a number", &*long], &MASK[..], &["task"][..]),
            (["", "", ""], &[], &["update_mask"]),
            (["", "x", ""], &["address.telephone", "weight"], &["task", "update_mask"]),
            // Each alone is permitted.
            ([&*wide, "", &*wide], &MASK, &["task"]),
        ] {
            let refused = desk.correct(task, texts, mask).await.unwrap_err();
            assert_violations(&refused, fields);
        }

        assert_eq!(desk.task(task).await, before);
        assert_eq!(desk.history(task).await.len(), 1);
        let unknown = format!("tasks/{UNKNOWN_ID}");
        let refused = desk.correct(&unknown, [""; 3], &MASK).await.unwrap_err();
        assert_unknown(&refused, &unknown);
        let reader = platform.operator().await.create_client("", &["dispatch:read"]).await;
        let reader = Desk::with(platform, &reader, "dispatch:read").await;
        let refused = reader.correct(task, [""; 3], &MASK).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
    }

    async fn a_repeated_correction_gets_its_first_response(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        let request = UpdateTaskRequest {
            idempotency: Some(Idempotency { key: "correct".to_owned(), request_hash: vec![7; 32] }),
            ..correction(&order.pickup, ["First", "", ""], &["comments"])
        };

        let first = desk.update_task(request.clone()).await.unwrap();

        desk.correct(&order.pickup, ["Second", "", ""], &["comments"]).await.unwrap();
        assert_eq!(desk.update_task(request).await.unwrap(), first);
        assert_eq!(desk.task(&order.pickup).await.comments, "Second");
    }

    async fn two_corrections_at_once_are_both_made(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        for round in 0..20 {
            let [order]: [Order; 1] = orders(&client).await;
            let texts = ["Ring twice", "+33612345678", "Second floor"];

            let (first, second, third) = tokio::join!(
                desk.correct(&order.pickup, texts, &MASK[..1]),
                desk.correct(&order.pickup, texts, &MASK[1..2]),
                desk.correct(&order.pickup, texts, &MASK[2..]),
            );

            for corrected in [first, second, third] {
                corrected.unwrap();
            }
            let task = desk.task(&order.pickup).await;
            let address = task.address.unwrap();
            let found = [Some(task.comments), address.telephone, address.description];
            assert_eq!(found, texts.map(|text| Some(text.to_owned())), "{round}");
        }
    }

    async fn a_corrected_number_finds_its_delivery_to_erase_it_which_is_not_corrected_again(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        let keyed = UpdateTaskRequest {
            idempotency: Some(Idempotency { key: "correct".to_owned(), request_hash: vec![7; 32] }),
            ..correction(&order.dropoff, ["Xyzzy", "+33612345678", "Xyzzy"], &MASK)
        };
        desk.update_task(keyed).await.unwrap();

        let printed = platform.run_delivery_json(&["erase", "--telephone", "+33612345678"]).await;

        assert_eq!(printed, json!([{ "delivery": iri(&order.delivery) }]));
        let stored = stored_text(platform).await;
        assert!(!stored.contains("Xyzzy") && !stored.contains("+33612345678"));
        let refused = desk.correct(&order.dropoff, ["Xyzzy", "", ""], &MASK).await.unwrap_err();
        assert_refused(&refused, "ERASED");
        assert_eq!(desk.task(&order.dropoff).await.comments, "");
    }
}
