//! A courier's client: it works the tasks in its lists, and knows no other.

use jiff::SignedDuration;
use proto::{
    CreateApiClientRequest, ListTasksRequest, ReopenTaskRequest, RescheduleTaskRequest,
    StartTaskRequest, api_clients_client::ApiClientsClient, task::State, task_event::Actor,
};

use super::{
    Desk, Order, TOMORROW, assert_refused, assert_unknown, assert_violations, assignment, orders,
};
use crate::harness::{Platform, grpc};

/// The client of a courier's phone.
pub(super) async fn phone(platform: &Platform, courier: &str) -> Desk {
    let credentials = platform
        .operator()
        .await
        .create_courier_client(courier)
        .await;
    Desk::with(platform, &credentials, "courier").await
}

fn start(name: &str) -> StartTaskRequest {
    StartTaskRequest {
        name: name.to_owned(),
        ..Default::default()
    }
}

fn reopen(name: &str) -> ReopenTaskRequest {
    ReopenTaskRequest {
        name: name.to_owned(),
        ..Default::default()
    }
}

on_both_databases! {
    async fn a_courier_works_the_tasks_in_its_list(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let phone = phone(platform, &ada).await;
        let [first, second]: [Order; 2] = orders(&client).await;
        desk.assign(&[&first.pickup], "", &ada).await;

        let listed = phone.list_tasks(ListTasksRequest::default()).await.unwrap().tasks;
        let listed: Vec<_> = listed.into_iter().map(|task| task.name).collect();
        assert_eq!(listed, [first.pickup.clone(), first.dropoff.clone()]);
        assert_eq!(phone.start(&first.pickup).await.state(), State::Doing);
        assert_eq!(phone.complete(&first.pickup).await.state(), State::Done);
        assert_eq!(phone.task(&first.pickup).await, desk.task(&first.pickup).await);
        let reopened = phone.reopen_task(reopen(&first.pickup)).await.unwrap();
        assert_eq!(reopened.state(), State::Doing);
        phone.complete(&first.pickup).await;
        platform.advance(SignedDuration::from_mins(11));
        let late = phone.reopen_task(reopen(&first.pickup)).await.unwrap_err();
        assert_refused(&late, "TASK_STATE");
        assert!(late.message().ends_with("set by courier"), "{}", late.message());

        let history = desk.history(&first.pickup).await;
        let done = history.last().unwrap();
        assert_eq!((done.actor(), &done.api_client), (Actor::Courier, &phone.api_client));
        let seen = phone.history(&first.pickup).await;
        assert_eq!(seen.len(), history.len());
        assert!(seen.iter().all(|event| event.api_client.is_empty() && event.notes.is_empty()));

        // Not its own, and what couriers do not do.
        for task in [&second.pickup, &second.dropoff] {
            assert_unknown(&phone.start_task(start(task)).await.unwrap_err(), task);
            let read = proto::GetTaskRequest { name: task.clone() };
            assert_unknown(&phone.get_task(read).await.unwrap_err(), task);
        }
        let reschedule = RescheduleTaskRequest {
            name: first.dropoff.clone(),
            time_slot: Some("2020-04-02 20:00-21:00".to_owned()),
            ..Default::default()
        };
        let refused = phone.reschedule_task(reschedule).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::PermissionDenied);
        let refused = phone.assign_tasks(assignment(&[&second.pickup], "", &ada)).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::PermissionDenied);
    }

    /// "A task is its own from its list's day until the end of the next."
    async fn a_list_is_worked_on_from_its_day_until_the_end_of_the_next(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let credentials = platform.operator().await.create_courier_client(&ada).await;
        let phone = Desk::with(platform, &credentials, "courier").await;
        let [first, second]: [Order; 2] = orders(&client).await;
        let tomorrow = proto::AssignTasksRequest {
            day: TOMORROW.to_owned(),
            ..assignment(&[&first.pickup, &second.pickup], "", &ada)
        };
        desk.assign_tasks(tomorrow).await.unwrap();

        let early = phone.start_task(start(&first.pickup)).await.unwrap_err();
        assert_unknown(&early, &first.pickup);
        let read = proto::GetTaskRequest { name: first.pickup.clone() };
        assert_unknown(&phone.get_task(read.clone()).await.unwrap_err(), &first.pickup);
        let refused = ListTasksRequest {
            day: TOMORROW.to_owned(),
            include_overdue: true,
            ..Default::default()
        };
        let refused = phone.list_tasks(refused).await.unwrap_err();
        assert_violations(&refused, &["day", "include_overdue"]);
        desk.assign(&[&second.pickup], &ada, &ben).await;
        for (days, is_worked_on) in [(1, true), (1, true), (1, false)] {
            platform.advance(SignedDuration::from_hours(24 * days));
            // Tokens end meanwhile.
            let phone = Desk::with(platform, &credentials, "courier").await;
            let started = phone.start_task(start(&first.pickup)).await;
            assert_eq!(started.is_ok(), is_worked_on, "{started:?}");
            let is_read = phone.get_task(read.clone()).await.is_ok();
            assert_eq!(is_read, is_worked_on);
            let of_ben = phone.start_task(start(&second.pickup)).await.unwrap_err();
            assert_unknown(&of_ben, &second.pickup);
        }
    }

    async fn the_token_of_a_disabled_courier_ends(platform: &Platform) {
        let desk = Desk::authorized(platform).await;
        let ada = desk.courier("Ada").await;
        let phone = phone(platform, &ada).await;
        phone.list_tasks(ListTasksRequest::default()).await.unwrap();

        desk.disable(&ada, true).await;

        let ended = phone.list_tasks(ListTasksRequest::default()).await.unwrap_err();
        assert_eq!(ended.code(), tonic::Code::Unauthenticated);
        desk.disable(&ada, false).await;
        phone.list_tasks(ListTasksRequest::default()).await.unwrap();
    }

    async fn a_couriers_client_has_that_scope_alone_and_no_store(platform: &Platform) {
        let desk = Desk::authorized(platform).await;
        let ada = desk.courier("Ada").await;
        let (channel, token) = platform.connect(&["admin"]).await;
        let create = async |courier: &str, store: &str, scopes: &[&str]| {
            let request = CreateApiClientRequest {
                courier: courier.to_owned(),
                store: store.to_owned(),
                display_name: "Phone".to_owned(),
                scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
                ..Default::default()
            };
            let mut clients = ApiClientsClient::new(channel.clone());
            clients.create_api_client(grpc::with_token(&token, request)).await
        };
        for (courier, store, scopes, fields) in [
            ("", "", &["courier"][..], &["courier"][..]),
            (&ada, "", &["courier", "dispatch"], &["courier"]),
            (&ada, "", &["dispatch"], &["courier"]),
            (&ada, &platform.store, &["courier"], &["courier", "scopes"]),
        ] {
            let refused = create(courier, store, scopes).await.unwrap_err();
            assert_violations(&refused, fields);
        }
        let unknown = format!("couriers/{}", crate::harness::UNKNOWN_ID);
        assert_unknown(&create(&unknown, "", &["courier"]).await.unwrap_err(), &unknown);
        let created = create(&ada, "", &["courier"]).await.unwrap().into_inner();
        assert_eq!((&created.courier, &created.scopes[..]), (&ada, &["courier".to_owned()][..]));
    }
}
