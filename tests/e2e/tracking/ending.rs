//! Links that open no page: wrong ones, revoked ones, those of a store without pages, and old ones.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::SignedDuration;
use serde_json::Value;

use super::{draft, open, path, read, status, text};
use crate::harness::{Platform, iri};

fn another_draft() -> Value {
    let mut draft = draft();
    draft["externalReference"] = Value::Null;
    draft
}

/// The page that says that there is no other.
fn ended() -> (u16, Vec<String>) {
    let text = [
        "This page has ended",
        "The shop knows more about the delivery.",
    ];
    (410, text.map(str::to_owned).to_vec())
}

fn unknown() -> (u16, Vec<String>) {
    let text = [
        "There is no such page",
        "Please check the link that the shop has sent.",
    ];
    (404, text.map(str::to_owned).to_vec())
}

on_both_databases! {
    async fn only_the_whole_token_opens_a_page(platform: &Platform) {
        let client = platform.client().await;
        let delivery = client.create_delivery(draft()).await;
        let other = client.create_delivery(another_draft()).await;
        let [own, other] = [&delivery, &other].map(|delivery| path(platform, delivery));
        let token = own.strip_prefix("/t/").unwrap();
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).unwrap();
        let (id, secret) = bytes.split_at(16);
        let of_other = BASE64_URL_SAFE_NO_PAD.decode(other.strip_prefix("/t/").unwrap()).unwrap();
        let pickup = delivery["pickup"]["id"].as_str().unwrap().parse::<uuid::Uuid>().unwrap();
        let encode = |parts: [&[u8]; 2]| BASE64_URL_SAFE_NO_PAD.encode(parts.concat());
        assert_eq!(encode([id, secret]), token);

        for wrong in [
            "x".to_owned(),
            token[1..].to_owned(),
            format!("{token}A"),
            format!("{token}="),
            format!("{token}%00"),
            token.to_uppercase(),
            encode([id, &of_other[16..]]),
            encode([id, &[0; 16]]),
            encode([pickup.as_bytes(), secret]),
            encode([&[0; 16], secret]),
            BASE64_URL_SAFE_NO_PAD.encode(id),
            "A".repeat(5000),
            delivery["id"].as_str().unwrap().to_owned(),
        ] {
            assert_eq!(read(platform, &format!("/t/{wrong}")).await, unknown(), "{wrong}");
            let error = platform.anonymous_client().get(&format!("/t/{wrong}")).await;
            assert_eq!(error.expect(404)["code"], "not_found");
        }
        assert_eq!(platform.anonymous_client().get("/t/").await.status, 404);
        assert_eq!([status(platform, &own).await, status(platform, &other).await], [200, 200]);
    }

    async fn a_revoked_link_is_gone_for_good(platform: &Platform) {
        let client = platform.client().await;
        let delivery = client.create_delivery(draft()).await;
        let kept = client.create_delivery(another_draft()).await;
        let page = path(platform, &delivery);

        let revoke = ["deliveries", "revoke-link", iri(&delivery)];
        let revoked = platform.run_delivery_json(&revoke).await;

        assert_eq!(revoked["tracking_url"], Value::Null);
        assert_eq!(platform.run_delivery_json(&revoke).await, revoked);
        let shown = platform.run_delivery_json(&["deliveries", "show", iri(&delivery)]).await;
        assert_eq!(shown, revoked);
        assert_eq!(read(platform, &page).await, ended());
        let error = platform.anonymous_client().get(&page).await.expect(410);
        assert_eq!(error["code"], "tracking_ended");
        let read = client.get(iri(&delivery)).await.expect(200);
        assert_eq!(read["trackingUrl"], Value::Null);
        assert_eq!(client.get(iri(&kept)).await.expect(200), kept);
        assert_eq!(status(platform, &path(platform, &kept)).await, 200);
    }

    async fn a_store_without_tracking_has_no_pages_until_it_is_on_again(platform: &Platform) {
        let client = platform.client().await;
        let delivery = client.create_delivery(draft()).await;
        let page = path(platform, &delivery);
        let set = async |tracking: &str| {
            let flag = format!("--tracking={tracking}");
            let store = platform.run_delivery_json(&["stores", "set", &platform.store, &flag]).await;
            assert_eq!(store["tracking"], tracking);
        };

        set("off").await;

        assert_eq!(read(platform, &page).await, ended());
        let read = client.get(iri(&delivery)).await.expect(200);
        assert_eq!(read["trackingUrl"], Value::Null);
        let later = client.create_delivery(another_draft()).await;
        assert_eq!(later["trackingUrl"], Value::Null);
        set("on").await;
        assert_eq!(status(platform, &page).await, 200);
        assert_eq!(client.get(iri(&delivery)).await.expect(200), delivery);
        let later = client.get(iri(&later)).await.expect(200);
        assert_eq!(status(platform, &path(platform, &later)).await, 200);
    }

    async fn a_page_ends_a_week_after_the_end_and_a_month_after_the_window(platform: &Platform) {
        let client = platform.client().await;
        let delivered = client.create_delivery(draft()).await;
        let open = client.create_delivery(another_draft()).await;
        for task in ["pickup", "dropoff"] {
            platform.run_delivery(&["tasks", "complete", iri(&delivered[task])]).await;
        }
        let [delivered, open] = [&delivered, &open].map(|delivery| path(platform, delivery));
        let statuses = async || [status(platform, &delivered).await, status(platform, &open).await];
        let minute = SignedDuration::from_mins(1);
        let days = |days: i64| SignedDuration::from_hours(24 * days);

        platform.advance(days(7) - minute);
        assert_eq!(statuses().await, [200, 200]);
        platform.advance(minute * 2);
        assert_eq!(statuses().await, [410, 200]);
        // From 9 April, 11:01, to a minute before 3 May, 13:00.
        platform.advance(days(24) + SignedDuration::from_mins(118));
        assert_eq!(statuses().await, [410, 200]);
        platform.advance(minute);
        assert_eq!(statuses().await, [410, 410]);
    }

    async fn an_erased_delivery_has_no_page_and_no_stored_link(platform: &Platform) {
        let client = platform.client().await;
        let create = async || client.post_with_key("/api/deliveries", "order-7", &draft()).await;
        let delivery = create().await.expect(201);
        let page = path(platform, &delivery);
        assert_eq!(create().await.expect(201), delivery, "the stored response");

        platform.run_delivery(&["erase", "--delivery", iri(&delivery)]).await;

        assert_eq!(read(platform, &page).await, unknown());
        let erased = client.get(iri(&delivery)).await.expect(200);
        assert_eq!(erased["trackingUrl"], Value::Null);
        assert_eq!(create().await.expect(201)["trackingUrl"], Value::Null);
    }

    async fn a_preview_has_no_link_and_each_delivery_its_own(platform: &Platform) {
        let client = platform.client().await;
        let preview = client.post("/api/deliveries/assert", draft()).await.expect(200);
        assert_eq!(preview["trackingUrl"], Value::Null);
        let first = client.create_delivery(draft()).await;
        let second = client.create_delivery(another_draft()).await;

        assert_ne!(first["trackingUrl"], second["trackingUrl"]);
        let listed = client.get("/api/deliveries").await.expect(200);
        let urls = [&listed["hydra:member"][0], &listed["hydra:member"][1]];
        assert_eq!(urls.map(|delivery| &delivery["trackingUrl"]), [&second["trackingUrl"], &first["trackingUrl"]]);
        let page = open(platform, &path(platform, &first), "en").await;
        assert!(text(&page).contains(&"Demo shop".to_owned()));
        let url = first["trackingUrl"].as_str().unwrap();
        assert!(!url.contains(first["id"].as_str().unwrap()));
    }
}
