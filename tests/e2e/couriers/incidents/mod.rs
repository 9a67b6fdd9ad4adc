//! Incidents of tasks over gRPC: reported by couriers and dispatch, open until dispatch closes them.

mod closing;
mod listing;
mod races;
mod watching;

use jiff::SignedDuration;
use proto::{
    Idempotency, Incident, ListIncidentsRequest, Report, ReportIncidentRequest, incident::State,
    task_event::Actor,
};
use serde_json::json;
use tonic::{Code, Response, Status};

use super::{
    Desk, Order, assert_refused, assert_unknown, assert_violations, now, orders, phone::phone,
};
use crate::harness::{Platform, UNKNOWN_ID, grpc, iri};

fn report(task: &str, description: &str) -> ReportIncidentRequest {
    ReportIncidentRequest {
        task: task.to_owned(),
        description: description.to_owned(),
        ..Default::default()
    }
}

/// All incidents of a task.
fn of(task: &str) -> ListIncidentsRequest {
    ListIncidentsRequest {
        task: task.to_owned(),
        ..Default::default()
    }
}

impl Desk {
    /// All incidents of a task that this client sees.
    async fn incidents_of(&self, task: &str) -> Vec<Incident> {
        self.list_incidents(of(task)).await.unwrap().incidents
    }

    /// Reports a minute after what was done before.
    async fn report_later(&self, platform: &Platform, task: &str, description: &str) -> Incident {
        platform.advance(SignedDuration::from_mins(1));
        self.report_incident(report(task, description))
            .await
            .unwrap()
    }

    async fn report_with_key(
        &self,
        request: ReportIncidentRequest,
    ) -> Result<Response<Incident>, Status> {
        let idempotency = Idempotency {
            key: "report".to_owned(),
            request_hash: vec![7; 32],
        };
        let request = ReportIncidentRequest {
            idempotency: Some(idempotency),
            ..request
        };
        let request = grpc::with_token(&self.token, request);
        self.incidents.clone().report_incident(request).await
    }
}

on_both_databases! {
    async fn a_courier_reports_what_dispatch_sees_with_who_reported_it(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let phone = phone(platform, &ada).await;
        let [order]: [Order; 1] = orders(&client).await;
        desk.assign(&[&order.pickup], "", &ada).await;
        platform.advance(SignedDuration::from_mins(1));
        let occurred_time = now(platform);
        platform.advance(SignedDuration::from_mins(1));
        let request = ReportIncidentRequest {
            failure_reason: "DAMAGED".to_owned(),
            metadata: [("shelf".to_owned(), "7".to_owned())].into(),
            report: Some(Report { occurred_time, ..Report::default() }),
            ..report(&order.pickup, " The box is wet\n")
        };

        let reported = phone.report_incident(request).await.unwrap();

        let expected = Incident {
            name: reported.name.clone(),
            task: order.pickup.clone(),
            state: State::Open.into(),
            description: "The box is wet".to_owned(),
            failure_reason: "DAMAGED".to_owned(),
            create_time: now(platform),
            occurred_time,
            metadata: [("shelf".to_owned(), "7".to_owned())].into(),
            ..Default::default()
        };
        assert_eq!(reported, expected);
        let whole = Incident {
            store: platform.store.clone(),
            actor: Actor::Courier.into(),
            api_client: phone.api_client.clone(),
            ..expected
        };
        assert_eq!(desk.incidents_of(&order.pickup).await, [whole]);
        for reader in [&desk, &phone] {
            assert!(reader.task(&order.pickup).await.has_incidents);
            assert!(!reader.task(&order.dropoff).await.has_incidents);
        }
    }

    /// Whatever the state of the task, with a reason alone, of a time that is not possible.
    async fn dispatch_reports_of_any_task(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        platform.advance(SignedDuration::from_mins(1));
        for task in [&order.pickup, &order.dropoff] {
            desk.complete(task).await;
        }
        let before_its_creation = prost_types::Timestamp { seconds: 7, nanos: 0 };
        let request = ReportIncidentRequest {
            failure_reason: "BITTEN_BY_DOG".to_owned(),
            report: Some(Report { occurred_time: Some(before_its_creation), ..Report::default() }),
            ..report(&order.dropoff, "")
        };
        platform.advance(SignedDuration::from_mins(1));

        let reported = desk.report_incident(request).await.unwrap();

        let expected = Incident {
            name: reported.name.clone(),
            task: order.dropoff.clone(),
            state: State::Open.into(),
            failure_reason: "BITTEN_BY_DOG".to_owned(),
            create_time: now(platform),
            occurred_time: desk.task(&order.dropoff).await.create_time,
            occurred_time_clamped: true,
            store: platform.store.clone(),
            actor: Actor::Dispatch.into(),
            api_client: desk.api_client.clone(),
            ..Default::default()
        };
        assert_eq!(reported, expected);
        assert_eq!(desk.incidents_of(&order.dropoff).await, [expected]);
    }

    async fn only_dispatch_and_the_courier_of_a_task_report_its_incidents(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let of_ada = phone(platform, &ada).await;
        let [mine, of_ben, unassigned]: [Order; 3] = orders(&client).await;
        desk.assign(&[&mine.pickup], "", &ada).await;
        desk.assign(&[&of_ben.pickup], "", &ben).await;
        let unknown = format!("tasks/{UNKNOWN_ID}");

        for task in [&of_ben.pickup, &unassigned.pickup, &unknown] {
            let refused = of_ada.report_incident(report(task, "Wet")).await.unwrap_err();
            assert_unknown(&refused, task);
        }
        let refused = desk.report_incident(report(&unknown, "Wet")).await.unwrap_err();
        assert_unknown(&refused, &unknown);
        let shop = Desk::with(platform, &platform.demo_client, "tasks").await;
        let refused = shop.report_incident(report(&mine.pickup, "Wet")).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        of_ada.report_incident(report(&mine.dropoff, "Wet")).await.unwrap();
        // A day and a half after the list's day it is not its own any more.
        platform.advance(SignedDuration::from_hours(36));
        let of_ada = phone(platform, &ada).await;
        of_ada.report_incident(report(&mine.dropoff, "Wet")).await.unwrap();
        // Two days more, and its reports are not even late.
        platform.advance(SignedDuration::from_hours(36));
        let of_ada = phone(platform, &ada).await;
        let refused = of_ada.report_incident(report(&mine.dropoff, "Dry")).await.unwrap_err();
        assert_unknown(&refused, &mine.dropoff);
    }

    async fn all_violations_of_a_report_are_reported_at_once_and_nothing_is_stored(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        let text = |count| "a".repeat(count);
        let wrong = ReportIncidentRequest {
            failure_reason: "not a code".to_owned(),
            metadata: [("key".to_owned(), text(501)), (text(65), String::new())].into(),
            ..report(&order.pickup, &text(2001))
        };
        let too_long_together = ReportIncidentRequest {
            metadata: (0..50).map(|number| (number.to_string(), "é".repeat(400))).collect(),
            ..report(&order.pickup, &text(2000))
        };

        for (request, fields) in [
            (wrong, &["description", "failure_reason", "metadata"][..]),
            (report(&order.pickup, " \n"), &["description"]),
            (too_long_together, &["metadata"]),
        ] {
            let refused = desk.report_incident(request).await.unwrap_err();
            assert_violations(&refused, fields);
        }

        assert_eq!(desk.incidents_of(&order.pickup).await, []);
        assert!(!desk.task(&order.pickup).await.has_incidents);
    }

    async fn a_repeated_report_opens_no_other_incident(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let other_desk = Desk::authorized(platform).await;
        let [order]: [Order; 1] = orders(&client).await;
        let request = report(&order.pickup, "Wet");

        let first = desk.report_with_key(request.clone()).await.unwrap().into_inner();
        let repeated = desk.report_with_key(request.clone()).await.unwrap();

        assert!(repeated.metadata().contains_key(proto::IDEMPOTENT_REPLAYED));
        assert_eq!(repeated.into_inner(), first);
        assert_eq!(desk.report_incident(request.clone()).await.unwrap(), first);
        // Other content, another client, or an incident that is closed is no repetition.
        let with_reason = ReportIncidentRequest { failure_reason: "DAMAGED".to_owned(), ..request.clone() };
        desk.report_incident(with_reason).await.unwrap();
        other_desk.report_incident(request.clone()).await.unwrap();
        assert_eq!(desk.incidents_of(&order.pickup).await.len(), 3);
        let close = proto::CloseIncidentRequest { name: first.name.clone(), ..Default::default() };
        desk.close_incident(close).await.unwrap();
        let again = desk.report_incident(request.clone()).await.unwrap();
        assert_ne!(again.name, first.name);
        // A key gets its first response, whatever happened since.
        let repeated = desk.report_with_key(request).await.unwrap();
        assert_eq!(repeated.into_inner(), first);
        assert_eq!(desk.incidents_of(&order.pickup).await.len(), 4);
    }

    async fn an_erased_task_gets_no_incident_and_its_incidents_lose_their_texts(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        platform.advance(SignedDuration::from_mins(1));
        let with_data = ReportIncidentRequest {
            failure_reason: "ZOE_SLEEPS".to_owned(),
            metadata: [("who".to_owned(), "Zoé".to_owned())].into(),
            ..report(&order.pickup, "Zoé sleeps")
        };
        let reported = desk.report_with_key(with_data.clone()).await.unwrap().into_inner();
        let erase = ["erase", "--delivery", iri(&order.delivery)];
        assert_eq!(platform.run_delivery_json(&erase).await, json!([{ "delivery": iri(&order.delivery) }]));

        let refused = desk.report_incident(report(&order.pickup, "Zoé wakes")).await.unwrap_err();

        assert_refused(&refused, "ERASED");
        let mut expected = Incident {
            description: String::new(),
            failure_reason: "OTHER".to_owned(),
            api_client: String::new(),
            ..reported
        };
        expected.metadata.clear();
        assert_eq!(desk.incidents_of(&order.pickup).await, std::slice::from_ref(&expected));
        let repeated = desk.report_with_key(with_data).await.unwrap();
        assert_eq!(repeated.into_inner(), expected);
        let close = proto::CloseIncidentRequest {
            name: expected.name.clone(),
            closed_with: "woke Zoé".to_owned(),
            ..Default::default()
        };
        let closed = desk.close_incident(close).await.unwrap();
        let expected = Incident {
            state: State::Closed.into(),
            close_time: closed.close_time,
            ..expected
        };
        assert_eq!(closed, expected);
        assert!(!desk.task(&order.pickup).await.has_incidents);
    }
}
