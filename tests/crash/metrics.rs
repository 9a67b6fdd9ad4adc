//! Metrics for operators, as scraped by Prometheus.

use std::time::Duration;

use crate::{
    ONE_AT_A_TIME, all_in_one::AllInOne, health, program::PROGRAMS, server::reserve_addr,
    webhook_receiver::WebhookReceiver,
};

/// Far longer than recording an outcome takes.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Metrics of attempts and of webhooks whose receivers are gone.
#[tokio::test]
async fn attempts_and_disabled_webhooks_are_counted() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let addr = reserve_addr();
    let flag = format!("--health-listen={addr}");
    let platform = AllInOne::start_under(&PROGRAMS.delivery, |_| vec![flag]).await;
    let (shop, board) = (platform.shop().await, platform.dispatch_board().await);
    let [healthy, gone] = [
        WebhookReceiver::start().await,
        WebhookReceiver::start().await,
    ];
    gone.respond_with(410);
    for receiver in [&healthy, &gone] {
        shop.subscribe(receiver.url()).await;
    }
    assert_eq!(
        counters(addr).await,
        [
            r#"delivery_webhooks_disabled_total{reason="failing"} 0"#,
            r#"delivery_webhooks_disabled_total{reason="gone"} 0"#,
        ]
    );

    let delivery = shop.create_delivery().await.unwrap();
    board.complete_delivery(&delivery).await;

    let expected = [
        r#"delivery_notification_attempts_total{outcome="delivered"} 1"#,
        r#"delivery_notification_attempts_total{outcome="status"} 1"#,
        r#"delivery_webhooks_disabled_total{reason="failing"} 0"#,
        r#"delivery_webhooks_disabled_total{reason="gone"} 1"#,
    ];
    let recorded = async {
        while counters(addr).await != expected {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(TIMEOUT, recorded).await.is_err() {
        assert_eq!(counters(addr).await, expected);
    }
}

/// The metrics without comments, sorted.
async fn counters(addr: std::net::SocketAddr) -> Vec<String> {
    let (status, text) = health::get(addr, "/metrics").await;
    assert_eq!(status, "200");
    assert!(text.ends_with("# EOF\n"), "{text}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}
