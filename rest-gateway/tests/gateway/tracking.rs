//! The tracking page and its files.

use http::Method;
use proto::{
    GetTrackingLogoRequest, GetTrackingRequest, TrackedDelivery, TrackingLogo,
    tracked_delivery::{Obstacle, Stage},
};
use tonic::Code;

use crate::harness::{
    Platform, Reply,
    samples::{NOON, core_status, instant},
};

const TOKEN: &str = "AZMuXJ9KcACAAAAAAAAAAQcHBwcHBwcHBwcHBwcHBwc";
const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

async fn get(platform: &Platform, language: &str) -> Reply {
    let request = platform.client.request(Method::GET, &format!("/t/{TOKEN}"));
    let request = request.header("accept", BROWSER);
    let request = request.header("accept-language", language);
    platform.client.send(request, "").await
}

fn on_its_way() -> TrackedDelivery {
    TrackedDelivery {
        stage: Stage::OnItsWay.into(),
        order_time: instant(NOON - 7200),
        collect_time: None,
        departure_time: instant(NOON - 600),
        after: instant(NOON),
        before: instant(NOON + 3600),
        street: "48 Rue <b>".to_owned(),
        address_locality: "Paris".to_owned(),
        store_display_name: "A \"B\" & C\u{202e}".to_owned(),
        store_telephone: "+33612345678".to_owned(),
        time_zone: "Europe/Paris".to_owned(),
        ..TrackedDelivery::default()
    }
}

#[tokio::test]
async fn the_page_says_where_the_parcel_is_and_nothing_of_others() {
    let platform = Platform::start().await;
    platform.core.will_respond(on_its_way());

    let page = get(&platform, "fr-CA").await;

    assert_eq!(page.status, 200);
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-language", "fr"),
        ("cache-control", "private, no-cache"),
        ("referrer-policy", "no-referrer"),
        ("x-robots-tag", "noindex"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    assert_eq!(page.header("set-cookie"), None);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
    assert!(!page.text().contains("://"), "it loads nothing of others");
    let (_, body) = page.text().split_once("<body>").unwrap();
    assert_eq!(
        body,
        "\n<main aria-live=\"polite\" data-seconds=\"15\">\n\
         <p class=\"shop\"><bdi dir=\"auto\">A &#34;B&#34; &#38; C</bdi>\
         <a class=\"call\" href=\"tel:+33612345678\">Appeler la boutique <span class=\"number\">+33612345678</span></a></p>\n\
         <h1>Prévue : <time datetime=\"2020-04-02T12:00:00+02:00\">2 avril, 12:00</time>–\
         <time datetime=\"2020-04-02T13:00:00+02:00\">13:00</time></h1>\n\
         <ol>\n\
         <li class=\"done\">Commandée <time datetime=\"2020-04-02T10:00:00+02:00\">2 avril, 10:00</time></li>\n\
         <li class=\"done\">Récupérée</li>\n\
         <li class=\"done\" aria-current=\"step\">En route \
         <time datetime=\"2020-04-02T11:50:00+02:00\">2 avril, 11:50</time></li>\n\
         <li>Livrée</li>\n\
         </ol>\n\
         <p class=\"address\"><bdi dir=\"auto\">48 Rue &#60;b&#62;</bdi>, <bdi dir=\"auto\">Paris</bdi></p>\n\
         </main>\n</body>\n</html>"
    );
    let title = "<meta property=\"og:title\" content=\"Livraison de A &#34;B&#34; &#38; C\">";
    assert!(page.text().contains(title), "{}", page.text());

    let (metadata, received) = platform.core.received_with_metadata::<GetTrackingRequest>();
    assert_eq!(received.token, TOKEN);
    assert_eq!(metadata.get("x-forwarded-for").unwrap(), "127.0.0.1");
    assert!(metadata.get("authorization").is_none());
}

#[tokio::test]
async fn a_parcel_that_does_not_arrive_has_no_steps_that_did_not_happen() {
    let platform = Platform::start().await;
    platform.core.will_respond(TrackedDelivery {
        stage: Stage::NotDelivered.into(),
        obstacle: Obstacle::NobodyThere.into(),
        departure_time: None,
        end_time: instant(NOON),
        after: None,
        before: None,
        street: String::new(),
        address_locality: String::new(),
        store_telephone: String::new(),
        ..on_its_way()
    });

    let page = get(&platform, "en").await;

    let (_, content) = page.text().split_once("</p>\n").unwrap();
    assert_eq!(
        content,
        "<h1>Not delivered</h1>\n\
         <p class=\"hint\">Nobody was there to take the parcel.</p>\n\
         <ol>\n\
         <li class=\"done\">Ordered <time datetime=\"2020-04-02T10:00:00+02:00\">2 April, 10:00</time></li>\n\
         <li class=\"stopped\" aria-current=\"step\">Not delivered \
         <time datetime=\"2020-04-02T12:00:00+02:00\">2 April, 12:00</time></li>\n\
         </ol>\n\
         </main>\n</body>\n</html>"
    );
}

#[tokio::test]
async fn a_reader_with_the_current_page_gets_304() {
    let platform = Platform::start().await;
    platform.core.will_respond(on_its_way());
    let page = get(&platform, "en").await;
    let etag = page.header("etag").unwrap();

    for (stage, status) in [(Stage::OnItsWay, 304), (Stage::Delivered, 200)] {
        platform.core.will_respond(TrackedDelivery {
            stage: stage.into(),
            ..on_its_way()
        });
        let request = platform.client.request(Method::GET, &format!("/t/{TOKEN}"));
        let request = request.header("accept-language", "en");
        let request = request.header("if-none-match", etag);
        let again = platform.client.send(request, "").await;

        assert_eq!(again.status, status, "{stage:?}");
        assert_eq!(again.header("cache-control"), Some("private, no-cache"));
    }
}

#[tokio::test]
async fn a_page_that_does_not_exist_says_so_to_people_and_programs() {
    let platform = Platform::start().await;
    for (code, reason, status, title) in [
        (
            Code::NotFound,
            "NOT_FOUND",
            404,
            "Diese Seite gibt es nicht",
        ),
        (
            Code::FailedPrecondition,
            "TRACKING_ENDED",
            410,
            "Diese Seite ist nicht mehr verfügbar",
        ),
    ] {
        let fail = || {
            platform
                .core
                .will_fail(core_status(code, reason, "the reason"));
        };
        fail();
        let page = get(&platform, "de").await;
        fail();
        let error = platform.client.get(&format!("/t/{TOKEN}")).await;

        assert_eq!(page.status, status);
        assert_eq!(page.header("cache-control"), Some("private, no-store"));
        assert_eq!(page.header("x-robots-tag"), Some("noindex"));
        assert!(page.text().contains(&format!("<h1>{title}</h1>")));
        assert!(page.text().contains("data-seconds=\"\"") && !page.text().contains("<script"));
        assert_eq!(error.status, status);
        assert_eq!(error.error()["code"], reason.to_ascii_lowercase());
        assert_eq!(error.error()["detail"], "the reason");
    }
    while platform.core.has_unread_call() {
        platform.core.received::<GetTrackingRequest>();
    }

    let long = platform.client.get(&format!("/t/{TOKEN}{TOKEN}")).await;
    assert_eq!(long.status, 404);
    assert!(!platform.core.has_unread_call());
}

#[tokio::test]
async fn the_files_of_the_page_are_kept_at_the_urls_that_it_names() {
    let platform = Platform::start().await;
    platform.core.will_respond(on_its_way());
    let page = get(&platform, "en").await;

    for (before, name, media_type) in [
        ("href=\"", "page.css", "text/css; charset=utf-8"),
        ("src=\"", "page.js", "text/javascript; charset=utf-8"),
    ] {
        let (_, rest) = page
            .text()
            .split_once(&format!("{before}files/{name}?"))
            .unwrap();
        let (version, _) = rest.split_once('"').unwrap();
        let named = platform
            .client
            .get(&format!("/t/files/{name}?{version}"))
            .await;
        let other = platform.client.get(&format!("/t/files/{name}")).await;

        assert_eq!(named.status, 200);
        assert_eq!(named.header("content-type"), Some(media_type));
        let kept = "public, max-age=31536000, immutable";
        assert_eq!(named.header("cache-control"), Some(kept));
        assert_eq!(other.header("cache-control"), Some("no-cache"));
        assert_eq!(named.body, other.body);
        assert!(named.text().lines().count() <= 40 || name == "page.css");
    }
    assert_eq!(platform.client.get("/t/files/page.html").await.status, 404);
}

#[tokio::test]
async fn requests_for_pages_are_counted_by_address() {
    let platform = Platform::start_with(|config| {
        config.rate_limits = rest_gateway::RateLimitConfig::off();
        config.rate_limits.tracking_address = "2/1h".parse().unwrap();
    })
    .await;

    let mut statuses = Vec::new();
    for _ in 0..3 {
        platform.core.will_respond(on_its_way());
        statuses.push(get(&platform, "en").await.status.as_u16());
    }

    assert_eq!(statuses, [200, 200, 429]);
    let limited = get(&platform, "en").await;
    assert!(limited.header("retry-after").is_some());
    assert_eq!(limited.error()["code"], "too_many_requests");
    assert_eq!(platform.client.get("/api").await.status, 200);
}

#[tokio::test]
async fn a_page_has_the_logo_and_the_colour_of_its_shop() {
    let platform = Platform::start().await;
    platform.core.will_respond(TrackedDelivery {
        store_colour: 7,
        logo_version: "abc_-1".to_owned(),
        ..on_its_way()
    });

    let page = get(&platform, "en").await;

    let beginning = format!(
        "<main class=\"colour-7\" aria-live=\"polite\" data-seconds=\"15\">\n\
         <p class=\"shop\"><img class=\"logo\" src=\"{TOKEN}/files/logo?abc_-1\" alt=\"\"><bdi dir=\"auto\">"
    );
    assert!(page.text().contains(&beginning), "{}", page.text());
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("img-src 'self' data:;"), "{policy}");
}

#[tokio::test]
async fn a_logo_is_kept_at_the_url_that_names_its_version() {
    let platform = Platform::start().await;
    let kept = "public, max-age=31536000, immutable";
    for (query, cached) in [("?v1", kept), ("?v0", "no-cache"), ("", "no-cache")] {
        platform.core.will_respond(TrackingLogo {
            media_type: "image/webp".to_owned(),
            content: b"RIFF".to_vec(),
            version: "v1".to_owned(),
        });

        let logo = platform
            .client
            .get(&format!("/t/{TOKEN}/files/logo{query}"))
            .await;

        assert_eq!((logo.status.as_u16(), &*logo.body), (200, &b"RIFF"[..]));
        for (name, value) in [
            ("content-type", "image/webp"),
            ("x-content-type-options", "nosniff"),
            ("cache-control", cached),
        ] {
            assert_eq!(logo.header(name), Some(value), "{query}");
        }
        let received = platform.core.received::<GetTrackingLogoRequest>();
        assert_eq!(received.token, TOKEN);
    }

    let missing = core_status(Code::NotFound, "NOT_FOUND", "there is none");
    platform.core.will_fail(missing);
    let error = platform.client.get(&format!("/t/{TOKEN}/files/logo")).await;
    assert_eq!(
        (error.status.as_u16(), &error.error()["code"]),
        (404, &"not_found".into())
    );
}

/// WCAG 2.2, 1.4.3 and 1.4.11: 4.5 for text, 3 for lines.
#[tokio::test]
async fn every_colour_has_enough_contrast_in_the_light_and_in_the_dark() {
    let platform = Platform::start().await;
    let style = platform.client.get("/t/files/page.css").await;
    let pairs = style.text().lines().filter_map(|line| {
        let (name, rest) = line.split_once(": light-dark(#")?;
        let (light, dark) = rest.split_once(", #")?;
        Some((name.trim(), [light, dark.split_once(')')?.0]))
    });
    let pairs: Vec<_> = pairs.collect();
    let (_, page) = pairs.iter().find(|(name, _)| *name == "--page").unwrap();

    for (name, colours) in &pairs[1..] {
        let least = if *name == "--line" { 3.0 } else { 4.5 };
        for (colour, page) in colours.iter().zip(page) {
            let (first, second) = (luminance(colour), luminance(page));
            let contrast = (first.max(second) + 0.05) / (first.min(second) + 0.05);
            assert!(
                contrast >= least,
                "{name} #{colour} on #{page}: {contrast:.2}"
            );
        }
    }
    let of_shops = pairs
        .iter()
        .filter(|(name, _)| name.starts_with(".colour-"));
    assert_eq!(of_shops.count(), 12);
}

/// Relative luminance, as WCAG defines it.
fn luminance(colour: &str) -> f64 {
    let part = |range: std::ops::Range<usize>| {
        let value = f64::from(u8::from_str_radix(&colour[range], 16).unwrap()) / 255.0;
        if value <= 0.04045 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * part(0..2) + 0.7152 * part(2..4) + 0.0722 * part(4..6)
}

#[tokio::test]
async fn every_delivery_has_a_readable_page() {
    let platform = Platform::start().await;
    let long = "é".repeat(200);
    for (tracked, shown) in [
        // Without a telephone, a window, a street and a town; in a zone that the gateway does not know.
        (
            TrackedDelivery {
                order_time: instant(NOON),
                time_zone: "Mars/Olympus".to_owned(),
                ..TrackedDelivery::default()
            },
            "<p class=\"shop\"><bdi dir=\"auto\"></bdi></p>\n<h1>Ordered</h1>\n<ol>",
        ),
        (
            TrackedDelivery {
                store_display_name: long.clone(),
                ..on_its_way()
            },
            &*format!("<bdi dir=\"auto\">{long}</bdi>"),
        ),
        (
            TrackedDelivery {
                store_display_name: "متجر\u{202e} <script>".to_owned(),
                street: "شارع 5".to_owned(),
                ..on_its_way()
            },
            "<bdi dir=\"auto\">متجر &#60;script&#62;</bdi>",
        ),
        // A clock that was wrong: the parcel leaves before it was ordered.
        (
            TrackedDelivery {
                departure_time: instant(0),
                ..on_its_way()
            },
            "On its way <time datetime=\"1970-01-01T01:00:00+01:00\">1 January, 01:00</time>",
        ),
        // More than the stage calls for.
        (
            TrackedDelivery {
                stage: Stage::Cancelled.into(),
                store_colour: 99,
                ..on_its_way()
            },
            "<h1>Cancelled</h1>",
        ),
    ] {
        platform.core.will_respond(tracked);

        let page = get(&platform, "en").await;

        assert_eq!(page.status, 200);
        assert!(page.text().contains(shown), "{}", page.text());
        assert_eq!(page.text().matches("<h1>").count(), 1);
        assert!(!page.text().contains("<script>"));
    }
}
