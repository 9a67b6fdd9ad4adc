//! `delivery deliveries`.

use jiff::SignedDuration;
use proto::iri;
use serde_json::{Value, json};

use super::{Shop, draft};
use crate::harness::{Platform, UNKNOWN_ID, all_in_one::stderr};

on_both_databases! {
    async fn deliveries_of_all_stores_are_listed_in_a_terminal(platform: &Platform) {
        let [first, second] = Shop::both(platform).await;
        let evening = first.deliver("2020-04-02 20:00").await;
        let mut referenced = draft("2020-04-02 13:00");
        referenced["externalReference"] = json!("A-1");
        let early = second.create(referenced).await;
        let mut tomorrow = draft("2020-04-03 13:00");
        tomorrow["externalReference"] = json!("A-1");
        let tomorrow = first.create(tomorrow).await;
        let list = async |flags: &[&str]| {
            let printed = platform.run_delivery_json(&[&["deliveries", "list"], flags].concat()).await;
            printed["deliveries"].as_array().unwrap().clone()
        };
        let listed = async |flags: &[&str]| {
            let rows = list(flags).await;
            let names = rows.iter().map(|row| iri::name(row["iri"].as_str().unwrap()).to_owned());
            names.collect::<Vec<_>>()
        };

        let id = |name: &str| name.split_once('/').unwrap().1.to_owned();
        let expected = json!({
            "id": id(&early),
            "iri": iri::of(&early),
            "state": "CREATED",
            "before": "2020-04-02T13:00:00+02:00",
            "store": "Another shop",
            "external_reference": "A-1",
            "courier": null,
            "address": "48 Rue de Rivoli",
            "store_id": id(&second.store),
        });
        assert_eq!(list(&["--store", &second.store]).await, [expected]);
        assert_eq!(listed(&[]).await, [&*early, &*evening]);
        assert_eq!(listed(&["--day=2020-04-03"]).await, [&*tomorrow]);
        assert_eq!(listed(&["--reference=A-1"]).await, [&*early, &*tomorrow]);
        assert_eq!(listed(&["--reference=A-1", "--store", &first.store]).await, [&*tomorrow]);
        assert_eq!(listed(&["--late"]).await, [""; 0]);
        platform.advance(SignedDuration::from_hours(3));
        assert_eq!(listed(&["--late"]).await, [&*early]);
        assert_eq!(listed(&["--open"]).await, [&*early, &*evening]);
        let tasks = platform.run_delivery_json(&["deliveries", "show", &early]).await["tasks"].clone();
        for task in tasks.as_array().unwrap() {
            platform.run_delivery(&["tasks", "complete", task["iri"].as_str().unwrap()]).await;
        }
        assert_eq!(listed(&["--late"]).await, [""; 0]);
        assert_eq!(listed(&["--open"]).await, [&*evening]);

        let text = platform.run_delivery(&["deliveries", "list"]).await;
        let lines: Vec<_> = text.lines().collect();
        let columns: Vec<_> = lines[0].split_whitespace().collect();
        assert_eq!(columns, ["delivery", "state", "before", "store", "reference", "courier", "address"]);
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[1].starts_with(&iri::of(&early)) && lines[1].contains("COMPLETED"), "{text}");
        let wrong = platform.run_delivery_output(&["deliveries", "list", "--day=tomorrow"]).await;
        assert_eq!(wrong.status.code(), Some(1));
        assert_eq!(stderr(&wrong), "day: must be a day such as 2026-12-01\n");
    }

    async fn a_list_has_all_pages(platform: &Platform) {
        let [shop, _] = Shop::both(platform).await;
        for _ in 0..101 {
            shop.deliver("2020-04-02 20:00").await;
        }

        let printed = platform.run_delivery_json(&["deliveries", "list"]).await;

        assert_eq!(printed["deliveries"].as_array().unwrap().len(), 101);
    }

    async fn a_delivery_is_shown_by_its_id_its_iri_and_its_reference(platform: &Platform) {
        let [first, second] = Shop::both(platform).await;
        let mut referenced = draft("2020-04-03 13:00");
        referenced["externalReference"] = json!("A-1");
        referenced["dropoff"]["address"]["contactName"] = json!("Zoé");
        let delivery = first.create(referenced.clone()).await;
        let (_, id) = delivery.split_once('/').unwrap();
        let show = async |text: &str| platform.run_delivery_json(&["deliveries", "show", text]).await;

        let shown = show(id).await;

        let tasks = shown["tasks"].as_array().unwrap();
        let texts = |member: &str| tasks.iter().map(|task| task[member].clone()).collect::<Vec<Value>>();
        assert_eq!(texts("type"), ["PICKUP", "DROPOFF"]);
        assert_eq!(texts("contact_name"), [Value::Null, json!("Zoé")]);
        assert_eq!(texts("address"), ["24 Rue de la Paix", "48 Rue de Rivoli"]);
        let expected = json!({
            "tasks": tasks,
            "id": id,
            "iri": iri::of(&delivery),
            "state": "CREATED",
            "store": "Demo shop",
            "store_id": first.store.split_once('/').unwrap().1,
            "external_reference": "A-1",
            "created_at": "2020-04-02T11:00:00+02:00",
            "cancelled_at": null,
            "tracking_url": shown["tracking_url"],
        });
        assert_eq!(shown, expected);
        for text in [&*delivery, &*iri::of(&delivery), "A-1"] {
            assert_eq!(show(text).await, shown, "{text}");
        }
        let text = platform.run_delivery(&["deliveries", "show", "A-1"]).await;
        assert!(text.contains("DROPOFF") && text.contains("Zoé"), "{text}");

        let same = second.create(referenced).await;
        for (text, message) in [
            ("A-2", "no delivery has the external reference \"A-2\", which is no ID either\n".to_owned()),
            (UNKNOWN_ID, format!("deliveries/{UNKNOWN_ID} does not exist\n")),
            (
                "A-1",
                format!(
                    "several deliveries have the external reference \"A-1\", show one by its IRI:\n\
                     {} (Another shop)\n{} (Demo shop)\n",
                    iri::of(&same),
                    iri::of(&delivery),
                ),
            ),
        ] {
            let refused = platform.run_delivery_output(&["deliveries", "show", text]).await;
            assert_eq!(refused.status.code(), Some(1));
            assert_eq!(stderr(&refused), message);
        }
    }
}
