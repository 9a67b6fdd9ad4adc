//! The page in a browser: as it follows the parcel, with and without scripts, on a telephone and a wide screen, in the
//! light and in the dark. The screenshots are for people to look at.

use std::{fs, path::Path};

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{brand::set_logo, draft, states::set_telephone};
use crate::harness::{
    Database, Platform,
    browser::{Browser, Screen},
    iri,
};

const SUBJECT: &str = "the tracking page in a browser";

const SCREENSHOTS: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/tracking");

const SHOP: &str = "Demo shopCall the shop +33123456789";
const ORDERED: &str = "Ordered 2 April, 11:00";
const ADDRESS: &str = "48 Rue de Rivoli, Paris";

/// A telephone and a wide window, in pixels.
const WIDTHS: [u32; 2] = [390, 1440];

/// The lines of a page, and in how many seconds it loads itself again without a script.
const READ: &str = "
    const refresh = document.querySelector('noscript meta');
    const lines = document.body.textContent.split('\\n').filter((line) => line);
    return [lines, refresh && refresh.content];
";

/// Hides the page, and returns how many timers it has.
const HIDE: &str = "
    Object.defineProperty(document, 'hidden', { value: true, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
    return timers.size;
";

/// Shows the page, and waits until it changes.
const SHOW: &str = "
    const main = document.querySelector('main');
    const change = new Promise((changed) => new MutationObserver(changed).observe(main, { childList: true }));
    delete document.hidden;
    document.dispatchEvent(new Event('visibilitychange'));
    return change.then(() => null);
";

/// Someone who has opened the link of a delivery, and does not touch the page again.
struct Recipient<'p> {
    platform: &'p Platform,
    browser: Browser,
    url: String,
}

impl<'p> Recipient<'p> {
    /// `None` on a machine without a browser.
    async fn new(platform: &'p Platform) -> Option<Self> {
        Some(Self {
            platform,
            browser: Browser::start(SUBJECT).await?,
            url: String::new(),
        })
    }

    async fn open(&mut self, url: &str) {
        url.clone_into(&mut self.url);
        self.browser.open(url).await;
        // Until the page is loaded again.
        self.browser.run("window.isSame = true").await;
    }

    async fn open_delivery(&mut self, delivery: &Value) {
        self.open(delivery["trackingUrl"].as_str().unwrap()).await;
    }

    /// After these seconds the page looks for a change.
    async fn wait(&self, seconds: u32) {
        assert_eq!(self.browser.fire_timer().await, seconds);
    }

    /// The page shows these lines, with and without scripts, and everyone can read them; it looks for a change only if
    /// there can be one.
    async fn sees(&self, state: &str, can_change: bool, lines: &[&str]) {
        let browser = &self.browser;
        assert_eq!(browser.run(READ).await[0], json!(lines), "{state}");
        assert_eq!(browser.run("return isSame").await, true, "{state}");
        let timers = u32::from(can_change);
        assert_eq!(browser.run("return timers.size").await, timers, "{state}");
        let refresh = can_change.then_some("60");
        let plain = browser.run_without_scripts(&self.url, READ).await;
        assert_eq!(plain, json!([lines, refresh]), "{state}");
        self.inspect(state).await;
    }

    /// Looks for what hinders people.
    async fn inspect(&self, state: &str) {
        let browser = &self.browser;
        for (width, theme) in WIDTHS
            .into_iter()
            .flat_map(|width| [(width, "light"), (width, "dark")])
        {
            let name = format!("{state}-{width}-{theme}");
            browser
                .show_on(Screen {
                    width,
                    theme,
                    media: "screen",
                })
                .await;
            self.save_screenshot(&name).await;
            assert_eq!(
                browser.accessibility_violations().await,
                json!([]),
                "{name}"
            );
            let beyond = "const { scrollWidth, clientWidth } = document.documentElement;
                return scrollWidth - clientWidth";
            assert_eq!(
                browser.run(beyond).await,
                0,
                "{name}: pixels beyond the window"
            );
        }
        assert_eq!(browser.complaints(&self.url).await, [""; 0], "{state}");
    }

    async fn save_screenshot(&self, name: &str) {
        let database = match self.platform.database.url {
            Some(_) => "postgresql",
            None => "sqlite",
        };
        let folder = Path::new(SCREENSHOTS).join(database);
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("{name}.png"));
        fs::write(file, self.browser.screenshot().await).unwrap();
    }
}

/// A draft for today's first slot, with a price that the shop has calculated.
async fn priced_draft(platform: &Platform) -> Value {
    let client = platform.client().await;
    let choices = client.get("/api/time_slots/choices").await.expect(200);
    let mut draft = draft();
    draft["externalReference"] = Value::Null;
    draft["dropoff"]["before"] = Value::Null;
    draft["dropoff"]["timeSlot"] = choices["choices"][0]["value"].clone();
    let price = client
        .post("/api/retail_prices/calculate", draft.clone())
        .await;
    draft["retailPrice"] = price.expect(200)["@id"].clone();
    draft
}

on_both_databases! {
    async fn a_recipient_follows_a_parcel_from_the_order_to_the_door(platform: &Platform) {
        let Some(mut recipient) = Recipient::new(platform).await else {
            return;
        };
        set_telephone(platform).await;
        let client = platform.client().await;
        let delivery = client.create_delivery(priced_draft(platform).await).await;
        let [pickup, dropoff] = ["pickup", "dropoff"].map(|kind| iri(&delivery[kind]));
        let minutes = |minutes| platform.advance(SignedDuration::from_mins(minutes));
        let promised = "Promised: 2 April, 12:00–14:00";

        recipient.open_delivery(&delivery).await;
        let lines = [SHOP, promised, ORDERED, "Collected", "On its way", "Delivered", ADDRESS];
        recipient.sees("ordered", true, &lines).await;

        let courier = platform.operator().await.create_courier("Ada").await;
        platform.run_delivery(&["tasks", "assign", "--courier", &courier, dropoff]).await;
        recipient.wait(60).await;
        recipient.sees("assigned", true, &lines).await;

        minutes(70);
        platform.run_delivery(&["tasks", "complete", pickup]).await;
        recipient.wait(60).await;
        let (expected, basis) = ("Expected: 2 April, 12:10–12:20", "Estimated at 12:10 from the courier’s stops.");
        let collected = "Collected 2 April, 12:10";
        let lines = [SHOP, expected, basis, promised, ORDERED, collected, "On its way", "Delivered", ADDRESS];
        recipient.sees("collected", true, &lines).await;

        minutes(5);
        platform.run_delivery(&["tasks", "start", dropoff]).await;
        recipient.wait(60).await;
        let (expected, basis) = ("Expected: 2 April, 12:15–12:25", "Estimated at 12:15 from the courier’s stops.");
        let started = "On its way 2 April, 12:15";
        let lines = [SHOP, expected, basis, promised, ORDERED, collected, started, "Delivered", ADDRESS];
        recipient.sees("on-its-way", true, &lines).await;

        minutes(21);
        recipient.wait(15).await;
        let none = "There is no current estimate.";
        let lines = [SHOP, promised, none, ORDERED, collected, started, "Delivered", ADDRESS];
        recipient.sees("overdue", true, &lines).await;

        minutes(1);
        assert_eq!(recipient.browser.run(HIDE).await, 0, "a hidden page has no timer");
        platform.run_delivery(&["tasks", "complete", dropoff]).await;
        recipient.browser.run(SHOW).await;
        let lines = [SHOP, "Delivered", ORDERED, collected, started, "Delivered 2 April, 12:37"];
        recipient.sees("delivered", false, &lines).await;
        recipient.browser.stop().await;
    }

    async fn a_recipient_sees_why_a_parcel_does_not_arrive_and_when_a_page_has_ended(platform: &Platform) {
        let Some(mut recipient) = Recipient::new(platform).await else {
            return;
        };
        set_telephone(platform).await;
        let client = platform.client().await;
        let delivery = client.create_delivery(draft()).await;
        let dropoff = iri(&delivery["dropoff"]);
        recipient.open_delivery(&delivery).await;

        platform.run_delivery(&["tasks", "fail", dropoff, "--reason=NOT_AT_HOME"]).await;
        recipient.wait(60).await;
        let failed = "Not delivered 2 April, 11:00";
        let lines = [SHOP, "Not delivered", "Nobody was there to take the parcel.", ORDERED, failed];
        recipient.sees("not-delivered", true, &lines).await;

        let slot = ["tasks", "reschedule", dropoff, "--time-slot=2020-04-03 14:00-15:00"];
        platform.run_delivery(&slot).await;
        recipient.wait(60).await;
        let promised = "Promised: 3 April, 14:00–15:00";
        let lines = [SHOP, promised, ORDERED, "Collected", "On its way", "Delivered", ADDRESS];
        recipient.sees("rescheduled", true, &lines).await;

        client.delete(iri(&delivery)).await.expect(204);
        recipient.wait(60).await;
        let lines = [SHOP, "Cancelled", ORDERED, "Cancelled 2 April, 11:00"];
        recipient.sees("cancelled", false, &lines).await;

        let mut other = draft();
        other["externalReference"] = Value::Null;
        let other = client.create_delivery(other).await;
        recipient.open_delivery(&other).await;
        platform.run_delivery(&["deliveries", "revoke-link", iri(&other)]).await;
        recipient.wait(60).await;
        let lines = ["This page has ended", "The shop knows more about the delivery."];
        recipient.sees("ended", false, &lines).await;

        let unknown = format!("{}/t/{}", platform.base_url, "A".repeat(43));
        recipient.open(&unknown).await;
        let lines = ["There is no such page", "Please check the link that the shop has sent."];
        recipient.sees("unknown", false, &lines).await;
        recipient.browser.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_shop_has_a_page_that_can_be_read_and_printed() {
    let platform = Platform::start(Database::sqlite()).await;
    let Some(mut recipient) = Recipient::new(&platform).await else {
        return;
    };
    let delivery = platform.client().await.create_delivery(draft()).await;
    let long = "Épicerie ".repeat(22);
    let unbroken = "é".repeat(200);
    for (state, name, telephone) in [
        ("right-to-left", "متجر الزهور في باريس", "+33123456789"),
        ("long", long.trim_end(), "+33123456789"),
        ("unbroken", &unbroken, "+33123456789"),
        ("no-telephone", "Fleurs & Cie", ""),
    ] {
        let set = [
            "stores",
            "set",
            &platform.store,
            "--name",
            name,
            "--telephone",
            telephone,
        ];
        platform.run_delivery(&set).await;
        recipient.open_delivery(&delivery).await;
        let shop = "return document.querySelector('.shop').textContent.trim()";
        let shown = recipient.browser.run(shop).await;
        assert!(
            shown.as_str().unwrap().starts_with(name),
            "{state}: {shown}"
        );
        recipient.inspect(state).await;
    }
    let brand = ["--colour=10", "--telephone=01 23 45 67 89"];
    platform
        .run_delivery(&[&set_logo(&platform)[..], &brand].concat())
        .await;
    recipient.open_delivery(&delivery).await;
    let logo = recipient
        .browser
        .run("return document.images[0].naturalWidth")
        .await;
    assert_ne!(logo, 0, "the logo is shown");
    recipient.inspect("brand").await;
    let paper = Screen {
        width: 720,
        theme: "dark",
        media: "print",
    };
    recipient.browser.show_on(paper).await;
    let paper = "return getComputedStyle(document.body).backgroundColor";
    assert_eq!(recipient.browser.run(paper).await, "rgb(255, 255, 255)");
    recipient.save_screenshot("print").await;
    recipient.browser.stop().await;
    platform.stop().await;
}
