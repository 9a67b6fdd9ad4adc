//! The logo and the colour of a shop on its pages.

use hyper::Method;
use serde_json::{Value, json};

use super::{draft, open, path};
use crate::harness::{Platform, Response, all_in_one::stderr, iri};

const LOGO: &[u8] = include_bytes!("logo.png");

/// The arguments that set the logo of the platform's shop.
pub(crate) fn set_logo(platform: &Platform) -> [&str; 5] {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/tracking/logo.png");
    ["stores", "set", &platform.store, "--logo", file]
}

async fn html(platform: &Platform, page: &str) -> String {
    let page = open(platform, page, "en").await;
    assert_eq!(page.status, 200);
    String::from_utf8(page.body.to_vec()).unwrap()
}

async fn get(platform: &Platform, path: &str) -> Response {
    let client = platform.anonymous_client();
    client.send(client.request(Method::GET, path), "").await
}

on_both_databases! {
    async fn a_page_shows_the_logo_and_the_colour_of_its_shop_alone(platform: &Platform) {
        let page = path(platform, &platform.client().await.create_delivery(draft()).await);
        let token = page.strip_prefix("/t/").unwrap();
        let before = html(platform, &page).await;
        assert!(before.contains("<main aria-live") && !before.contains("<img"), "{before}");
        let logo = format!("{page}/files/logo");
        assert_eq!(get(platform, &logo).await.expect(404)["code"], "not_found");

        let with_colour = [&set_logo(platform)[..], &["--colour=7"]].concat();
        let store = platform.run_delivery_json(&with_colour).await;

        let version = store["logo"].as_str().unwrap();
        assert_eq!((store["colour"].clone(), version.len()), (json!(7), 16));
        let shown = html(platform, &page).await;
        let image = format!("<img class=\"logo\" src=\"{token}/files/logo?{version}\" alt=\"\">");
        assert!(shown.contains("<main class=\"colour-7\"") && shown.contains(&image), "{shown}");
        let kept = get(platform, &format!("{logo}?{version}")).await;
        assert_eq!((kept.status, &kept.body[..]), (200, LOGO));
        assert_eq!(kept.header("content-type"), "image/png");
        assert_eq!(kept.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(get(platform, &logo).await.header("cache-control"), "no-cache");

        let other = platform.run_delivery_json(&["stores", "create", "--name=Other"]).await;
        assert_eq!([&other["logo"], &other["colour"]], [&Value::Null, &Value::Null]);
        let again = ["stores", "set", &platform.store, "--name=Shop"];
        assert_eq!(platform.run_delivery_json(&again).await["logo"], version);

        let remove = ["stores", "set", &platform.store, "--logo=", "--colour=0"];
        let store = platform.run_delivery_json(&remove).await;
        assert_eq!([&store["logo"], &store["colour"]], [&Value::Null, &Value::Null]);
        assert!(!html(platform, &page).await.contains("<img"));
        assert_eq!(get(platform, &logo).await.expect(404)["code"], "not_found");
    }

    async fn a_logo_is_seen_only_as_long_as_its_page(platform: &Platform) {
        platform.run_delivery(&set_logo(platform)).await;
        let delivery = platform.client().await.create_delivery(draft()).await;
        let page = path(platform, &delivery);
        let logo = format!("{page}/files/logo");
        assert_eq!(get(platform, &logo).await.status, 200);
        for wrong in ["/t/x/files/logo".to_owned(), format!("/t/{}/files/logo", "A".repeat(43)), format!("{page}A/files/logo")] {
            assert_eq!(get(platform, &wrong).await.expect(404)["code"], "not_found", "{wrong}");
        }

        platform.run_delivery(&["deliveries", "revoke-link", iri(&delivery)]).await;

        assert_eq!(get(platform, &logo).await.expect(410)["code"], "tracking_ended");
    }

    async fn what_is_no_logo_and_no_colour_is_rejected(platform: &Platform) {
        let text = concat!("--logo=", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let large = concat!("--logo=", env!("CARGO_MANIFEST_DIR"), "/Cargo.lock");
        for (logo, error) in [
            (text, "is not a whole PNG or WebP image"),
            (large, "is larger than 100000 bytes"),
        ] {
            for command in [&["stores", "create", "--name=Shop"][..], &["stores", "set", &platform.store]] {
                let rejected = platform.run_delivery_output(&[command, &[logo, "--colour=13"]].concat()).await;
                assert_eq!(rejected.status.code(), Some(1));
                assert_eq!(
                    stderr(&rejected),
                    format!("--colour: 13 is not the number of a colour: give 1 to 12, or 0 for the platform's own\n--logo: {error}\n")
                );
            }
        }
        let absent = platform.run_delivery_output(&["stores", "set", &platform.store, "--logo=/nowhere"]).await;
        assert_eq!(absent.status.code(), Some(2));
        assert!(stderr(&absent).contains("No such file"), "{}", stderr(&absent));
    }
}
