//! The page in each state, in each language, and as it changes.

use hyper::Method;
use jiff::SignedDuration;
use proto::{CompleteTaskRequest, iri, tasks_client::TasksClient};
use serde_json::json;

use super::{MARK, draft, open, path, read, text};
use crate::harness::{Platform, grpc, iri};

const SHOP: &str = "Demo shopCall the shop +33123456789";
const PROMISED: &str = "Promised: 3 April, 12:45–13:00";
const ADDRESS: &str = "48 Rue de Rivoli, Paris";

pub(super) async fn set_telephone(platform: &Platform) {
    let set = [
        "stores",
        "set",
        &platform.store,
        "--telephone=01 23 45 67 89",
    ];
    let store = platform.run_delivery_json(&set).await;
    assert_eq!(store["telephone"], "+33123456789");
}

on_both_databases! {
    async fn a_page_shows_each_step_of_the_parcel_and_nothing_private(platform: &Platform) {
        set_telephone(platform).await;
        let client = platform.client().await;
        let delivery = client.create_delivery(draft()).await;
        let page = path(platform, &delivery);
        platform.operator().await.create_store(&format!("Of {MARK}")).await;
        let courier = platform.operator().await.create_courier(MARK).await;
        let dropoff = iri(&delivery["dropoff"]);
        platform.run_delivery(&["tasks", "assign", "--courier", &courier, dropoff]).await;
        let operator = platform.operator().await;
        operator.report_incident(iri::name(dropoff), &format!("{MARK} is angry")).await;
        let minutes = |minutes| platform.advance(SignedDuration::from_mins(minutes));

        let ordered = "Ordered 2 April, 11:00";
        let expected = [SHOP, PROMISED, ordered, "Collected", "On its way", "Delivered", ADDRESS];
        assert_eq!(read(platform, &page).await, (200, expected.map(str::to_owned).to_vec()));

        minutes(5);
        let (channel, token) = platform.connect(&["tasks:all"]).await;
        let done = CompleteTaskRequest {
            name: iri::name(iri(&delivery["pickup"])).to_owned(),
            notes: format!("{MARK} was asleep"),
            contact_name: format!("Zoé {MARK}"),
            ..CompleteTaskRequest::default()
        };
        TasksClient::new(channel).complete_task(grpc::with_token(&token, done)).await.unwrap();
        let collected = "Collected 2 April, 11:05";
        let expected = [SHOP, PROMISED, ordered, collected, "On its way", "Delivered", ADDRESS];
        assert_eq!(read(platform, &page).await, (200, expected.map(str::to_owned).to_vec()));

        minutes(5);
        platform.run_delivery(&["tasks", "start", dropoff]).await;
        let started = "On its way 2 April, 11:10";
        let expected = [SHOP, PROMISED, ordered, collected, started, "Delivered", ADDRESS];
        assert_eq!(read(platform, &page).await, (200, expected.map(str::to_owned).to_vec()));

        minutes(5);
        platform.run_delivery(&["tasks", "fail", dropoff, "--reason=NOT_AT_HOME"]).await;
        let expected = [
            SHOP, "Not delivered", "Nobody was there to take the parcel.", ordered, collected, started,
            "Not delivered 2 April, 11:15",
        ];
        assert_eq!(read(platform, &page).await, (200, expected.map(str::to_owned).to_vec()));

        let slot = ["tasks", "reschedule", dropoff, "--time-slot=2020-04-03 14:00-15:00"];
        platform.run_delivery(&slot).await;
        let promised = "Promised: 3 April, 14:00–15:00";
        let expected = [SHOP, promised, ordered, collected, "On its way", "Delivered", ADDRESS];
        assert_eq!(read(platform, &page).await, (200, expected.map(str::to_owned).to_vec()));

        minutes(5);
        platform.run_delivery(&["tasks", "complete", dropoff]).await;
        let expected = [SHOP, "Delivered", ordered, collected, "On its way", "Delivered 2 April, 11:20"];
        assert_eq!(read(platform, &page).await, (200, expected.map(str::to_owned).to_vec()));
    }

    async fn a_cancelled_delivery_and_an_unknown_reason_are_shown(platform: &Platform) {
        let client = platform.client().await;
        let cancelled = client.create_delivery(draft()).await;
        client.delete(iri(&cancelled)).await.expect(204);
        let mut other = draft();
        other["externalReference"] = json!(null);
        let failed = client.create_delivery(other).await;
        let reason = format!("--reason={MARK}_SLEEPS");
        platform.run_delivery(&["tasks", "fail", iri(&failed["dropoff"]), &reason]).await;

        let expected = ["Demo shop", "Cancelled", "Ordered 2 April, 11:00", "Cancelled 2 April, 11:00"];
        let shown = read(platform, &path(platform, &cancelled)).await;
        assert_eq!(shown, (200, expected.map(str::to_owned).to_vec()));
        let expected = [
            "Demo shop", "Not delivered", "Please ask the shop.", "Ordered 2 April, 11:00",
            "Not delivered 2 April, 11:00",
        ];
        let shown = read(platform, &path(platform, &failed)).await;
        assert_eq!(shown, (200, expected.map(str::to_owned).to_vec()));
    }

    async fn a_page_is_in_the_language_of_the_browser(platform: &Platform) {
        let delivery = platform.client().await.create_delivery(draft()).await;
        let page = path(platform, &delivery);
        for (accepted, language, promised) in [
            ("en-GB", "en", "Promised: 3 April, 12:45–13:00"),
            ("fr-CA, en;q=0.5", "fr", "Prévue : 3 avril, 12:45–13:00"),
            ("de", "de", "Zugesagt: 3. April, 12:45–13:00"),
            ("es", "es", "Prevista: 3 de abril, 12:45–13:00"),
            ("it", "it", "Prevista: 3 aprile, 12:45–13:00"),
            ("nl-BE", "nl", "Beloofd: 3 april, 12:45–13:00"),
            ("pl", "en", "Promised: 3 April, 12:45–13:00"),
        ] {
            let shown = open(platform, &page, accepted).await;

            assert_eq!(shown.status, 200, "{accepted}");
            assert_eq!(shown.header("content-language"), language);
            assert_eq!(text(&shown)[1], promised);
        }
    }

    async fn a_page_with_its_files_takes_at_most_15_kilobytes(platform: &Platform) {
        let delivery = platform.client().await.create_delivery(draft()).await;
        let page = path(platform, &delivery);
        let client = platform.anonymous_client();
        let mut bytes = 0;
        for path in [&*page, "/t/files/page.css", "/t/files/page.js"] {
            let request = client.request(Method::GET, path).header("accept-encoding", "gzip");
            let response = client.send(request, "").await;
            assert_eq!((response.status, response.header("content-encoding")), (200, "gzip"), "{path}");
            bytes += response.body.len();
        }
        assert!(bytes <= 15_000, "{bytes}");
    }

    async fn a_reader_with_the_current_page_gets_it_again_only_once_it_changes(platform: &Platform) {
        let delivery = platform.client().await.create_delivery(draft()).await;
        let page = path(platform, &delivery);
        let etag = open(platform, &page, "en").await.header("etag").to_owned();
        let client = platform.anonymous_client();
        let again = async || {
            let request = client.request(Method::GET, &page).header("accept-language", "en");
            client.send(request.header("if-none-match", &etag), "").await
        };

        platform.advance(SignedDuration::from_mins(10));
        assert_eq!(again().await.status, 304);
        platform.run_delivery(&["tasks", "complete", iri(&delivery["pickup"])]).await;

        assert_eq!(again().await.status, 200);
    }

    async fn a_shop_with_a_name_that_turns_text_is_shown_as_text(platform: &Platform) {
        let name = "--name=<b>\"A\" & متجر";
        platform.run_delivery(&["stores", "set", &platform.store, name]).await;
        let delivery = platform.client().await.create_delivery(draft()).await;

        let shown = open(platform, &path(platform, &delivery), "en").await;

        let html = String::from_utf8(shown.body.to_vec()).unwrap();
        let title = "<title>Delivery from &#60;b&#62;&#34;A&#34; &#38; متجر</title>";
        assert!(html.contains(title), "{html}");
        let heading = "<bdi dir=\"auto\">&#60;b&#62;&#34;A&#34; &#38; متجر</bdi>";
        assert!(html.contains(heading), "{html}");
    }

    async fn a_reopened_parcel_has_no_end_and_a_clock_that_jumps_ends_no_page(platform: &Platform) {
        let delivery = platform.client().await.create_delivery(draft()).await;
        let page = path(platform, &delivery);
        let dropoff = iri(&delivery["dropoff"]);
        // A delivery of which both tasks are done is final.
        platform.run_delivery(&["tasks", "complete", dropoff]).await;
        let (_, delivered) = read(platform, &page).await;
        assert_eq!(delivered[1], "Delivered");

        platform.run_delivery(&["tasks", "reopen", dropoff]).await;

        let expected = [
            "Demo shop",
            PROMISED,
            "Ordered 2 April, 11:00",
            "Collected",
            "On its way 2 April, 11:00",
            "Delivered",
            ADDRESS,
        ];
        let expected = (200, expected.map(str::to_owned).to_vec());
        assert_eq!(read(platform, &page).await, expected);
        // Back to before the order, and to after the window.
        for hours in [-2, 50] {
            platform.advance(SignedDuration::from_hours(hours));
            assert_eq!(read(platform, &page).await, expected, "{hours}");
        }
    }

    async fn a_shop_has_a_page_with_the_longest_name(platform: &Platform) {
        let name = "é".repeat(200);
        platform.run_delivery(&["stores", "set", &platform.store, "--name", &name]).await;
        let delivery = platform.client().await.create_delivery(draft()).await;

        let (status, lines) = read(platform, &path(platform, &delivery)).await;

        assert_eq!((status, &lines[0]), (200, &name));
    }
}
