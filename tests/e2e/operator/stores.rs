//! `delivery stores`: create, list, show, set.

use serde_json::{Value, json};

use crate::harness::{Platform, UNKNOWN_ID, all_in_one::stderr};

on_both_databases! {
    async fn a_store_is_created_shown_and_updated(platform: &Platform) {
        let created = platform
            .run_delivery_json(&[
                "stores", "create", "--name=Book shop", "--address=45 Rue d'Ulm, Paris",
                "--lat-lng=48.8425,2.3445", "--timezone=Europe/Brussels", "--currency=CHF",
                "--country=BE",
            ])
            .await;
        let id = id_of(&created);
        let store = json!({
            "id": id,
            "iri": format!("/api/stores/{id}"),
            "name": "Book shop",
            "address": "45 Rue d'Ulm, Paris",
            "lat_lng": [48.8425, 2.3445],
            "timezone": "Europe/Brussels",
            "currency": "CHF",
            "country": "BE",
            "service_area": null,
            "unpriced": "accept",
            "tracking": "on",
            "telephone": null,
            "colour": null,
            "logo": null,
            "created_at": "2020-04-02T11:00:00+02:00",
            "disabled_at": null,
        });
        assert_eq!(created, store);
        for name in [id.clone(), format!("stores/{id}"), format!("/api/stores/{id}")] {
            assert_eq!(platform.run_delivery_json(&["stores", "show", &name]).await, store);
        }

        let set = ["stores", "set", &id, "--name=Book store", "--currency=EUR"];
        let printed = platform.run_delivery(&set).await;
        assert_eq!(
            printed,
            format!(
                "id        {id}\n\
                 name      Book store\n\
                 address   45 Rue d'Ulm, Paris\n\
                 location  48.8425,2.3445\n\
                 timezone  Europe/Brussels\n\
                 currency  EUR\n\
                 country   BE\n\
                 unpriced  accept\n\
                 tracking  on\n\
                 created   2020-04-02T11:00:00+02:00\n"
            )
        );
        assert_eq!(platform.run_delivery(&["stores", "show", &id]).await, printed);
    }

    async fn a_location_alone_moves_the_address_and_keeps_its_text(platform: &Platform) {
        let store = platform
            .run_delivery_json(&[
                "stores", "create", "--name=Shop", "--address=45 Rue d'Ulm, Paris",
                "--lat-lng=48.8425,2.3445",
            ])
            .await;
        let id = id_of(&store);
        let set = async |flags: &[&str]| {
            let set = platform.run_delivery_json(&[&["stores", "set", &id], flags].concat()).await;
            assert_eq!(platform.run_delivery_json(&["stores", "show", &id]).await, set);
            (set["address"].clone(), set["lat_lng"].clone())
        };

        let moved = (json!("45 Rue d'Ulm, Paris"), json!([48.8554, 2.3596]));
        assert_eq!(set(&["--lat-lng=48.8554,2.3596"]).await, moved);
        let replaced = (json!("Dock 4"), json!([48.86, 2.36]));
        assert_eq!(set(&["--address=Dock 4", "--lat-lng=48.86,2.36"]).await, replaced);
    }

    async fn stores_are_listed_oldest_first(platform: &Platform) {
        let demo = platform.store.strip_prefix("stores/").unwrap().to_owned();
        let second = platform.run_delivery_json(&["stores", "create", "--name=Second"]).await;
        let third = platform.run_delivery_json(&["stores", "create", "--name=Third"]).await;

        let listed = platform.run_delivery_json(&["stores", "list"]).await;
        let shown = platform.run_delivery_json(&["stores", "show", &demo]).await;
        assert_eq!(listed, json!([shown, second, third]));

        let [second, third] = [id_of(&second), id_of(&third)];
        let [demo_address, demo_location] = [&shown["address"], &shown["lat_lng"]];
        let demo_address = demo_address.as_str().unwrap();
        let demo_location = format!("{},{}", demo_location[0], demo_location[1]);
        let (address, location) = (demo_address.chars().count(), demo_location.len());
        assert_eq!(
            platform.run_delivery(&["stores", "list"]).await,
            format!(
                "{:36}  name       {:address$}  {:location$}  timezone      currency  country  service area  unpriced  tracking  telephone  colour  logo  created                    disabled\n\
                 {demo}  Demo shop  {demo_address}  {demo_location}  Europe/Paris  EUR       FR                     accept    on                                 2020-04-02T11:00:00+02:00\n\
                 {second}  Second     {:address$}  {:location$}  Europe/Paris  EUR       FR                     accept    on                                 2020-04-02T11:00:00+02:00\n\
                 {third}  Third      {:address$}  {:location$}  Europe/Paris  EUR       FR                     accept    on                                 2020-04-02T11:00:00+02:00\n",
                "id", "address", "location", "", "", "", "",
            )
        );
    }

    async fn invalid_store_arguments_are_reported_by_flag(platform: &Platform) {
        let created = platform.run_delivery_json(&["stores", "create", "--name=Shop"]).await;
        let invalid = ["--name= ", "--timezone=Mars", "--currency=XXL", "--country=Q"];
        let id = id_of(&created);
        let unknown = UNKNOWN_ID;

        for command in [&["stores", "create"][..], &["stores", "set", &id]] {
            let arguments = [command, &invalid].concat();
            let rejected = platform.run_delivery_output(&arguments).await;
            assert_eq!(rejected.status.code(), Some(1));
            let errors = stderr(&rejected);
            let flags: Vec<_> = errors.lines().map(|line| line.split(": ").next().unwrap()).collect();
            assert_eq!(flags, ["--name", "--timezone", "--currency", "--country"], "{errors}");
        }
        for command in [&["stores", "show", unknown][..], &["stores", "set", unknown, "--name=X"]] {
            let rejected = platform.run_delivery_output(command).await;
            assert_eq!(rejected.status.code(), Some(1));
            assert_eq!(stderr(&rejected), format!("stores/{unknown} does not exist\n"));
        }
        assert_eq!(platform.run_delivery_json(&["stores", "show", &id]).await, created);
    }

    /// A distance alone is measured from the store's address.
    async fn a_service_area_given_as_a_distance_requires_an_address(platform: &Platform) {
        let created = platform.run_delivery_json(&["stores", "create", "--name=Shop"]).await;
        let id = id_of(&created);
        let area = "--service-area=5km";
        for command in [&["stores", "create", "--name=Shop", area][..], &["stores", "set", &id, area]] {
            let rejected = platform.run_delivery_output(command).await;
            assert_eq!(
                (rejected.status.code(), stderr(&rejected).as_str()),
                (
                    Some(1),
                    "--service-area: is a distance from the store's address, which is not set: set the address too, or give a point with the distance (48.8554,2.3596,5km)\n"
                )
            );
        }
        assert_eq!(platform.run_delivery_json(&["stores", "list"]).await[1], created);

        for command in [
            &["stores", "create", "--name=Shop", area, "--lat-lng=48.8554,2.3596"][..],
            &["stores", "set", &id, area, "--lat-lng=48.8554,2.3596"],
            &["stores", "set", &id, "--service-area=6km"],
        ] {
            let store = platform.run_delivery_json(command).await;
            assert_eq!(store["service_area"]["center"], Value::Null, "{command:?}");
        }
    }

    async fn a_stores_client_cannot_run_operator_commands(platform: &Platform) {
        for (arguments, scope) in [
            (&["stores", "list"][..], "platform:read"),
            (&["stores", "create", "--name=Shop"], "admin"),
            (&["clients", "list"], "admin"),
            (&["keys", "list"], "admin"),
            (&["keys", "rotate"], "admin"),
        ] {
            let rejected = platform.run_delivery_as(&platform.demo_client, arguments).await;
            assert_eq!(rejected.status.code(), Some(1));
            assert!(rejected.stdout.is_empty());
            assert_eq!(
                stderr(&rejected),
                format!("cannot get an access token for the operator: this client is not permitted the scope {scope:?}; its scopes are deliveries, tasks\n")
            );
        }
    }

    async fn a_client_that_only_reads_the_platform_runs_the_commands_that_read(platform: &Platform) {
        let reader = platform.operator().await.create_client("", &["platform:read"]).await;
        let client = platform.client().await;
        let webhook = client.create_webhook("delivery.completed", "http://127.0.0.1:9/").await;
        let (store, webhook) = (platform.store.as_str(), id_of(&webhook));

        for arguments in [
            &["stores", "list"][..],
            &["stores", "show", store],
            &["webhooks", "list", "--store", store],
            &["webhooks", "attempts", &webhook],
        ] {
            let read = platform.run_delivery_as(&reader, arguments).await;
            let printed = String::from_utf8(read.stdout).unwrap();
            assert_eq!(printed, platform.run_delivery(arguments).await, "{arguments:?}");
        }
        for arguments in [
            &["stores", "set", store, "--name=Shop"][..],
            &["webhooks", "disable", &webhook],
            &["tasks", "list"],
        ] {
            let rejected = platform.run_delivery_as(&reader, arguments).await;
            assert_eq!(rejected.status.code(), Some(1), "{arguments:?}");
        }
    }
}

fn id_of(resource: &Value) -> String {
    resource["id"].as_str().unwrap().to_owned()
}
