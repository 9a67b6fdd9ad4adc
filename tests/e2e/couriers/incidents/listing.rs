//! Lists of incidents: of all stores, and of a task for those who may read it.

use jiff::SignedDuration;
use proto::{CloseIncidentRequest, Incident, ListIncidentsRequest, ReportIncidentRequest};
use serde_json::json;
use tonic::Code;

use super::super::{Desk, Order, TODAY, assert_unknown, assert_violations, orders, phone::phone};
use super::{of, report};
use crate::harness::{Platform, assertions::json_ld};

/// All pages of a list, of so many incidents each.
async fn pages(desk: &Desk, open_only: bool, size: u32) -> Vec<Incident> {
    let mut request = ListIncidentsRequest {
        open_only,
        page_size: Some(size),
        ..Default::default()
    };
    let mut incidents = Vec::new();
    loop {
        let page = desk.list_incidents(request.clone()).await.unwrap();
        assert!(page.incidents.len() <= usize::try_from(size).unwrap());
        assert_eq!(page.time_zone, "");
        incidents.extend(page.incidents);
        if page.next_page_token.is_empty() {
            return incidents;
        }
        request.page_token = page.next_page_token;
    }
}

on_both_databases! {
    async fn incidents_of_all_stores_are_listed_newest_first(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let other_shop = platform.new_store_client().await;
        let [order]: [Order; 1] = orders(&client).await;
        let other = Order::on(&other_shop, TODAY).await;
        assert_eq!(pages(&desk, false, 30).await, []);
        let first = desk.report_later(platform, &order.pickup, "a").await;
        let second = desk.report_later(platform, &other.dropoff, "b").await;
        let third = desk.report_later(platform, &order.pickup, "c").await;
        assert_ne!(second.store, first.store);
        let close = CloseIncidentRequest { name: first.name.clone(), ..Default::default() };

        let first = desk.close_incident(close).await.unwrap();

        for size in [1, 2, 3, 100] {
            let open = [third.clone(), second.clone()];
            assert_eq!(pages(&desk, true, size).await, open, "{size}");
            let all = [third.clone(), second.clone(), first.clone()];
            assert_eq!(pages(&desk, false, size).await, all, "{size}");
        }
        assert_eq!(desk.incidents_of(&order.pickup).await, [third.clone(), first]);
        let open_of_task = ListIncidentsRequest { open_only: true, ..of(&order.pickup) };
        let listed = desk.list_incidents(open_of_task).await.unwrap();
        assert_eq!((listed.incidents, &*listed.time_zone), (vec![third], "Europe/Paris"));
    }

    async fn shops_and_couriers_see_the_incidents_of_their_tasks_without_who_reported_them(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [order]: [Order; 1] = orders(&client).await;
        desk.assign(&[&order.pickup], "", &ada).await;
        let reported = desk.report_later(platform, &order.pickup, "Wet").await;
        let with_metadata = ReportIncidentRequest {
            failure_reason: "DAMAGED".to_owned(),
            metadata: [("shelf".to_owned(), "7".to_owned())].into(),
            ..report(&order.pickup, "Torn")
        };
        platform.advance(SignedDuration::from_mins(1));
        let torn = desk.report_incident(with_metadata).await.unwrap();
        let close = CloseIncidentRequest {
            name: reported.name.clone(),
            closed_with: "dried".to_owned(),
            ..Default::default()
        };
        platform.advance(SignedDuration::from_mins(1));
        let dried = desk.close_incident(close).await.unwrap();
        assert_eq!(dried.closed_with, "dried");

        let iris = [&torn, &dried].map(|incident| format!("/api/{}", incident.name));
        let of_courier = [torn, dried].map(|incident| Incident {
            store: String::new(),
            actor: 0,
            api_client: String::new(),
            closed_with: String::new(),
            ..incident
        });
        let phone_of_ada = phone(platform, &ada).await;
        assert_eq!(phone_of_ada.incidents_of(&order.pickup).await, of_courier);
        let mut of_shop = of_courier;
        of_shop[0].metadata.clear();
        let shop = Desk::with(platform, &platform.demo_client, "tasks").await;
        let listed = shop.list_incidents(of(&order.pickup)).await.unwrap();
        assert_eq!((listed.incidents, &*listed.time_zone), (of_shop.to_vec(), "Europe/Paris"));

        let path = format!("/api/{}/incidents", order.pickup);
        let found = json_ld(&client.get(&path).await, 200);
        let task = format!("/api/{}", order.pickup);
        let id = |iri: &str| iri.rsplit('/').next().map(str::to_owned);
        let members = json!([
            {
                "@id": iris[0],
                "@type": "Incident",
                "id": id(&iris[0]),
                "task": task,
                "description": "Torn",
                "failureReasonCode": "DAMAGED",
                "createdAt": "2020-04-02T11:02:00+02:00",
                "occurredAt": "2020-04-02T11:02:00+02:00",
                "closedAt": null,
            },
            {
                "@id": iris[1],
                "@type": "Incident",
                "id": id(&iris[1]),
                "task": task,
                "description": "Wet",
                "failureReasonCode": null,
                "createdAt": "2020-04-02T11:01:00+02:00",
                "occurredAt": "2020-04-02T11:01:00+02:00",
                "closedAt": "2020-04-02T11:03:00+02:00",
            },
        ]);
        assert_eq!(found["hydra:member"], members);
        let page = json_ld(&client.get(&format!("{path}?itemsPerPage=1")).await, 200);
        assert_eq!(page["hydra:member"], json!([members[0]]));
        let next = page["hydra:view"]["hydra:next"].as_str().unwrap();
        let page = json_ld(&client.get(next).await, 200);
        assert_eq!(page["hydra:member"], json!([members[1]]));
        assert_eq!(page["hydra:view"].get("hydra:next"), None);

        let other_shop = platform.new_store_client().await;
        assert_eq!(other_shop.get(&path).await.status, 404);
        let phone_of_ben = phone(platform, &ben).await;
        let refused = phone_of_ben.list_incidents(of(&order.pickup)).await.unwrap_err();
        assert_unknown(&refused, &order.pickup);
        assert_eq!(shop.incidents_of(&order.dropoff).await, []);
    }

    async fn wrong_lists_are_refused_with_all_that_is_wrong(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let shop = Desk::with(platform, &platform.demo_client, "tasks").await;
        let [order]: [Order; 1] = orders(&client).await;
        let wrong = ListIncidentsRequest {
            page_size: Some(0),
            page_token: "x".to_owned(),
            ..Default::default()
        };

        for reader in [&phone(platform, &ada).await, &shop] {
            let refused = reader.list_incidents(wrong.clone()).await.unwrap_err();
            assert_violations(&refused, &["page_size", "page_token", "task"]);
        }
        let refused = desk.list_incidents(wrong).await.unwrap_err();
        assert_violations(&refused, &["page_size", "page_token"]);
        let program = platform.operator().await.create_client("", &["tasks:all"]).await;
        let program = Desk::with(platform, &program, "tasks:all").await;
        let refused = program.list_incidents(of(&order.pickup)).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        let path = format!("/api/{}/incidents?itemsPerPage=0&cursor=x", order.pickup);
        let refused = client.get(&path).await.expect(400);
        let violations = refused["violations"].as_array().unwrap().iter();
        let paths: Vec<_> = violations.map(|found| found["propertyPath"].as_str().unwrap()).collect();
        assert_eq!(paths, ["itemsPerPage", "cursor"]);
    }

    async fn an_operator_lists_and_closes_incidents_in_a_terminal(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        let run = async |arguments: &[&str]| platform.run_delivery_json(arguments).await;
        assert_eq!(run(&["incidents", "list"]).await, json!({ "incidents": [] }));
        let reported = desk.report_later(platform, &order.pickup, "Wet").await;
        let id = reported.name.trim_start_matches("incidents/");
        let mut expected = json!({
            "id": id,
            "task": format!("/api/{}", order.pickup),
            "state": "open",
            "created_at": "2020-04-02T09:01:00+00:00",
            "reason": null,
            "description": "Wet",
            "closed_at": null,
            "closed_with": null,
            "occurred_at": "2020-04-02T09:01:00+00:00",
            "reported_by": "dispatch",
            "api_client": desk.api_client,
            "store": platform.store.trim_start_matches("stores/"),
        });
        assert_eq!(run(&["incidents", "list"]).await, json!({ "incidents": [expected] }));
        platform.advance(SignedDuration::from_mins(1));

        let closed = run(&["incidents", "close", id, "--note=dried"]).await;

        expected["state"] = json!("closed");
        expected["closed_at"] = json!("2020-04-02T09:02:00+00:00");
        expected["closed_with"] = json!("dried");
        assert_eq!(closed, expected);
        assert_eq!(run(&["incidents", "close", id, "--note=again"]).await, expected);
        assert_eq!(run(&["incidents", "list"]).await, json!({ "incidents": [] }));
        assert_eq!(run(&["incidents", "list", "--all"]).await, json!({ "incidents": [expected] }));
    }
}
