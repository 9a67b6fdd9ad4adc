//! What dispatch reports on behalf of a courier: the history names both.

use proto::{
    CancelDeliveryRequest, CompleteTaskRequest, FailTaskRequest, ReopenTaskRequest, Report,
    ReportIncidentRequest, RescheduleTaskRequest, StartTaskRequest, Task,
    deliveries_client::DeliveriesClient, task::State, task_event::Actor,
};
use tonic::{Code, Status};

use super::{events, incidents, last_events, move_away};
use crate::{
    couriers::{
        Desk, Order, TODAY, assert_refused, assert_unknown, assert_violations, orders, phone::phone,
    },
    harness::{Platform, UNKNOWN_ID, grpc},
};

fn on_behalf_of(courier: &str) -> Report {
    Report {
        on_behalf_of: courier.to_owned(),
        ..Report::default()
    }
}

async fn complete(desk: &Desk, task: &str, courier: &str) -> Result<Task, Status> {
    let request = CompleteTaskRequest {
        name: task.to_owned(),
        report: Some(on_behalf_of(courier)),
        ..CompleteTaskRequest::default()
    };
    desk.complete_task(request).await
}

on_both_databases! {
    async fn each_command_names_the_courier_and_who_reported_it(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [order]: [Order; 1] = orders(&client).await;
        desk.assign(&[&order.pickup], "", &ada).await;
        let (name, report) = (order.pickup.clone(), Some(on_behalf_of(&ada)));

        let start = StartTaskRequest { name: name.clone(), report: report.clone(), ..Default::default() };
        assert_eq!(desk.start_task(start).await.unwrap().state(), State::Doing);
        assert_eq!(complete(&desk, &name, &ada).await.unwrap().state(), State::Done);
        let reopen = ReopenTaskRequest { name: name.clone(), report: report.clone(), ..Default::default() };
        assert_eq!(desk.reopen_task(reopen).await.unwrap().state(), State::Doing);
        let fail = FailTaskRequest {
            name: name.clone(),
            reason: "LATE".to_owned(),
            report: report.clone(),
            ..Default::default()
        };
        assert_eq!(desk.fail_task(fail).await.unwrap().state(), State::Failed);
        let incident = ReportIncidentRequest {
            task: name.clone(),
            description: "The bike is broken".to_owned(),
            report: report.clone(),
            ..Default::default()
        };
        assert_eq!(desk.report_incident(incident).await.unwrap().actor(), Actor::Dispatch);
        let reschedule = RescheduleTaskRequest {
            name: name.clone(),
            time_slot: Some(format!("{TODAY} 13:00-14:00")),
            report,
            ..Default::default()
        };
        assert_eq!(desk.reschedule_task(reschedule).await.unwrap().state(), State::Todo);

        let reported = last_events::<7>(&desk, &name).await;
        let names = reported.each_ref().map(|event| &*event.event);
        let expected = [
            "task:started",
            "task:done",
            "task:reopened",
            "task:failed",
            "task:incident-reported",
            "task:rescheduled",
            "task:incident-closed",
        ];
        assert_eq!(names, expected);
        for event in reported {
            assert_eq!((event.actor(), &event.api_client), (Actor::Dispatch, &desk.api_client));
            assert_eq!((&event.courier, &*event.list_day), (&ada, ""));
        }
        let shop = Desk::with(platform, &platform.demo_client, "tasks").await;
        assert!(shop.history(&name).await.iter().all(|event| event.courier.is_empty()));
    }

    async fn the_courier_is_an_enabled_one_whose_list_has_the_task(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben, eve) = (desk.courier("Ada").await, desk.courier("Ben").await, desk.courier("Eve").await);
        let [order, of_eve]: [Order; 2] = orders(&client).await;
        move_away(platform, &desk, &order, [&ada, &ben]).await;
        desk.assign(&[&of_eve.pickup], "", &eve).await;
        desk.disable(&eve, true).await;
        let unknown = format!("couriers/{UNKNOWN_ID}");

        let refused = complete(&desk, &order.pickup, &unknown).await.unwrap_err();
        assert_unknown(&refused, &unknown);
        let refused = complete(&desk, &order.pickup, "Ada").await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        // Late reports are the courier's own.
        for (task, courier) in [(&order.pickup, &ada), (&of_eve.pickup, &eve), (&of_eve.pickup, &ben)] {
            let refused = complete(&desk, task, courier).await.unwrap_err();
            assert_violations(&refused, &["report"]);
        }
        // With the other violations of the request.
        let fail = FailTaskRequest {
            name: order.pickup.clone(),
            reason: "not a code".to_owned(),
            report: Some(on_behalf_of(&ada)),
            ..Default::default()
        };
        assert_violations(&desk.fail_task(fail).await.unwrap_err(), &["reason", "report"]);
        let incident = ReportIncidentRequest {
            task: order.pickup.clone(),
            report: Some(on_behalf_of(&ada)),
            ..Default::default()
        };
        let refused = desk.report_incident(incident).await.unwrap_err();
        assert_violations(&refused, &["description", "report"]);
        assert_eq!(desk.task(&order.pickup).await.state(), State::Todo);
        assert_eq!(complete(&desk, &order.pickup, &ben).await.unwrap().state(), State::Done);
    }

    async fn only_dispatch_reports_on_behalf_of_couriers(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let phone = phone(platform, &ada).await;
        let program = platform.operator().await.create_client("", &["tasks:all"]).await;
        let program = Desk::with(platform, &program, "tasks:all").await;
        let [order]: [Order; 1] = orders(&client).await;
        desk.assign(&[&order.pickup], "", &ada).await;

        for reporter in [&phone, &program] {
            let refused = complete(reporter, &order.pickup, &ada).await.unwrap_err();
            assert_eq!(refused.code(), Code::PermissionDenied);
        }
        let cancel = CancelDeliveryRequest {
            name: desk.task(&order.pickup).await.delivery,
            report: Some(on_behalf_of(&ada)),
            ..CancelDeliveryRequest::default()
        };
        let (channel, token) = platform.connect(&["admin"]).await;
        let cancel = DeliveriesClient::new(channel).cancel_delivery(grpc::with_token(&token, cancel)).await;
        assert_violations(&cancel.unwrap_err(), &["report"]);
        assert_eq!(desk.task(&order.pickup).await.state(), State::Todo);
    }

    async fn a_refused_report_on_behalf_of_a_courier_is_not_kept(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [order]: [Order; 1] = orders(&client).await;
        desk.assign(&[&order.pickup], "", &ada).await;
        desk.fail(&order.pickup).await;
        let known = events(&desk, &order.pickup).await;

        let refused = complete(&desk, &order.pickup, &ada).await.unwrap_err();

        assert_refused(&refused, "TASK_STATE");
        assert_eq!(events(&desk, &order.pickup).await, known);
        assert_eq!(incidents(&desk, &order.pickup).await, []);
    }
}
