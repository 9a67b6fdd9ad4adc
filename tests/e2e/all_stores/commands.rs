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

    async fn deliveries_are_cancelled_by_their_ids_their_beginnings_and_their_references(platform: &Platform) {
        let [first, second] = Shop::both(platform).await;
        let by_iri = first.deliver("2020-04-02 20:00").await;
        let mut referenced = draft("2020-04-02 21:00");
        referenced["externalReference"] = json!("A-1");
        let by_reference = second.create(referenced).await;
        let begun = first.deliver("2020-04-02 22:00").await;
        let id = |name: &str| name.split_once('/').unwrap().1.to_owned();
        // Nearly the whole id: those that are created within a minute have the same beginning.
        let by_prefix = id(&begun)[..35].to_ascii_uppercase();

        let mut ambiguous = draft("2020-04-03 20:00");
        let prefix = id(&by_iri)[..30].to_owned();
        ambiguous["externalReference"] = json!(prefix);
        let ambiguous = second.create(ambiguous).await;
        let refused = platform.run_delivery_output(&["deliveries", "cancel", &prefix]).await;
        let expected = format!(
            "several deliveries have the external reference {prefix:?} or an ID that begins with it, show one by its IRI:\n\
             {} (Another shop)\n{} (Demo shop)\n",
            iri::of(&ambiguous),
            iri::of(&by_iri),
        );
        assert_eq!(stderr(&refused), expected);
        let shown = platform.run_delivery_json(&["deliveries", "show", &by_prefix]).await;
        assert_eq!(shown["id"], id(&begun));
        let pickup = shown["tasks"][0]["iri"].as_str().unwrap();
        platform.run_delivery(&["tasks", "complete", pickup]).await;
        let by_iri_itself = iri::of(&by_iri);
        let cancel = ["deliveries", "cancel", &by_iri_itself, "A-1", &by_prefix, "--json"];
        let output = platform.run_delivery_output(&cancel).await;

        assert_eq!(output.status.code(), Some(1));
        let refused = stderr(&output);
        assert!(refused.starts_with(&format!("{}: the pickup is DONE since", iri::of(&begun))), "{refused}");
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = printed["deliveries"].as_array().unwrap().iter();
        let rows: Vec<_> = rows.map(|row| (row["iri"].clone(), row["state"].clone())).collect();
        let cancelled = |name: &str| (json!(iri::of(name)), json!("CANCELLED"));
        assert_eq!(rows, [cancelled(&by_iri), cancelled(&by_reference)]);
        let unknown = platform.run_delivery_output(&["deliveries", "cancel", "0badc0de"]).await;
        assert_eq!(stderr(&unknown), "no delivery has the external reference \"0badc0de\", which is no ID either\n");

        let csv = platform.run_delivery(&["deliveries", "list", "--state=cancelled", "--csv"]).await;
        let line = |name: &str, time: &str, store: &str, reference: &str, store_id: &str| {
            let (id, iri) = (id(name), iri::of(name));
            format!("{id},{iri},CANCELLED,2020-04-02T{time}:00:00+02:00,{store},{reference},,48 Rue de Rivoli,{store_id}\r\n")
        };
        let expected = [
            "id,iri,state,before,store,external_reference,courier,address,store_id\r\n".to_owned(),
            line(&by_iri, "20", "Demo shop", "", &id(&first.store)),
            line(&by_reference, "21", "Another shop", "A-1", &id(&second.store)),
        ];
        assert_eq!(csv, expected.concat());
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
