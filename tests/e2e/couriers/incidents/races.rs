//! Incidents that are reported and closed at one instant, at one core and at two: each once.

use proto::CloseIncidentRequest;

use super::super::{Desk, Order, orders};
use super::report;
use crate::harness::{ApiClient, Platform};

const ROUNDS: usize = 20;

/// The same report, another one of another client, and all of them closed, at once by each.
async fn report_and_close([first, second, other]: [&Desk; 3], client: &ApiClient) {
    for round in 0..ROUNDS {
        let [order]: [Order; 1] = orders(client).await;
        let request = report(&order.pickup, "Wet");

        let (one, same, of_other) = tokio::join!(
            first.report_incident(request.clone()),
            second.report_incident(request.clone()),
            other.report_incident(request.clone()),
        );

        let (one, same, of_other) = (one.unwrap(), same.unwrap(), of_other.unwrap());
        assert_eq!(one, same, "{round}");
        let mut names = [&one.name, &of_other.name];
        names.sort();
        let listed = first.incidents_of(&order.pickup).await;
        let mut found: Vec<_> = listed.iter().map(|incident| &incident.name).collect();
        found.sort();
        assert_eq!(found, names, "{round}");

        let close = |name: &str, closed_with: &str| CloseIncidentRequest {
            name: name.to_owned(),
            closed_with: closed_with.to_owned(),
            ..Default::default()
        };
        let (by_first, by_other, of_other) = tokio::join!(
            first.close_incident(close(&one.name, "first")),
            other.close_incident(close(&one.name, "other")),
            second.close_incident(close(&of_other.name, "second")),
        );

        assert_eq!(by_first.unwrap(), by_other.unwrap(), "{round}");
        assert_eq!(of_other.unwrap().closed_with, "second", "{round}");
        assert!(!first.task(&order.pickup).await.has_incidents, "{round}");
        let history = first.history(&order.pickup).await;
        let count = |name: &str| history.iter().filter(|event| event.event == name).count();
        let counts = ["reported", "closed"].map(|event| count(&format!("task:incident-{event}")));
        assert_eq!(counts, [2, 2], "{round}");
    }
}

on_both_databases! {
    async fn an_incident_is_reported_and_closed_once_at_one_instant(platform: &Platform) {
        let client = platform.client().await;
        let desk = Desk::authorized(platform).await;
        let other = Desk::authorized(platform).await;

        report_and_close([&desk, &desk, &other], &client).await;
    }
}

/// "Two commands at one instant on two cores: one wins, the other learns which."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_cores_report_and_close_incidents_as_one_does() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let client = platforms[0].client().await;
    let operator = platforms[0].operator().await;
    let credentials = operator.create_client("", &["dispatch"]).await;
    let first = Desk::with(&platforms[0], &credentials, "dispatch").await;
    let second = Desk::with(&platforms[1], &credentials, "dispatch").await;
    let other = Desk::authorized(&platforms[1]).await;

    report_and_close([&first, &second, &other], &client).await;

    Platform::stop_both(platforms).await;
}
