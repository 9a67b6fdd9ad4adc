//! Webhooks: logs for operators, isolation of failures, test sends without a dispatcher.

use std::collections::BTreeSet;

use crate::{
    all_in_one::AllInOne, all_processors, cluster::Cluster, counting_receiver::CountingReceiver,
    webhook_receiver::WebhookReceiver,
};

/// The log contains a warning with the webhook, its store and the cause.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disabling_a_webhook_is_logged() {
    let _processors = all_processors().await;
    let mut platform = AllInOne::start().await;
    let (shop, board) = (platform.shop().await, platform.dispatch_board().await);
    let receiver = WebhookReceiver::start().await;
    receiver.respond_with(410);
    for _ in 0..2 {
        shop.subscribe(receiver.url()).await;
    }
    let delivery = shop.create_delivery().await.unwrap();
    board.complete_delivery(&delivery).await;

    let webhooks = shop.get("/api/webhooks").await.unwrap();
    for webhook in webhooks["hydra:member"].as_array().unwrap() {
        let id = webhook["id"].as_str().unwrap();
        let line = platform
            .server
            .wait_for_line(&format!("webhook.id={id}"))
            .await;
        for part in [
            " WARN ",
            "a webhook is disabled",
            "store.id=",
            "its receiver answered 410 Gone",
        ] {
            assert!(line.contains(part), "{line}");
        }
    }
    assert!(platform.server.terminate().await.success());
}

/// A notification whose secret cannot be decrypted is not sent, and its failure cannot be recorded.
/// Other webhooks are notified at once, without waiting for a lease to expire.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_cannot_be_decrypted_delays_no_other_webhook() {
    const OTHERS: usize = 8;

    let _processors = all_processors().await;
    let mut platform = AllInOne::start().await;
    let (shop, board) = (platform.shop().await, platform.dispatch_board().await);
    let receiver = WebhookReceiver::start().await;
    shop.subscribe("http://127.0.0.1:9/broken").await;
    for _ in 0..OTHERS {
        shop.subscribe(receiver.url()).await;
    }
    platform.sql("UPDATE webhooks SET encrypted_secret = x'00' WHERE url LIKE '%/broken'");
    platform.sql(
        "CREATE TRIGGER refuse BEFORE UPDATE ON notifications
         WHEN NEW.attempts > OLD.attempts AND EXISTS (
             SELECT 1 FROM webhooks WHERE id = NEW.webhook_id AND url LIKE '%/broken'
         )
         BEGIN SELECT RAISE(ABORT, 'refused'); END",
    );

    // The second delivery's notifications show that none of the first is sent again meanwhile.
    let mut ids = BTreeSet::new();
    for _ in 0..2 {
        let delivery = shop.create_delivery().await.unwrap();
        board.complete_delivery(&delivery).await;
        for _ in 0..OTHERS {
            let notification = receiver.next_notification().await;
            assert_eq!(notification.json()["data"]["object"], delivery["@id"]);
            ids.insert(notification.header("webhook-id").to_owned());
        }
    }

    assert_eq!(ids.len(), 2 * OTHERS);
    platform
        .server
        .wait_for_line("cannot record notifications that cannot be sent")
        .await;
    assert!(receiver.received().await.is_empty());
    assert!(platform.server.terminate().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_send_without_a_dispatcher_gets_a_retryable_error() {
    let _processors = all_processors().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let shop = cluster.shop().await;
    let receiver = CountingReceiver::subscribed(&shop).await;
    let webhooks = shop.get("/api/webhooks").await.unwrap();
    let webhook = webhooks["hydra:member"][0]["@id"].as_str().unwrap();
    for dispatcher in &mut cluster.dispatchers {
        assert!(dispatcher.terminate().await.success());
    }

    let failure = shop.test_webhook(webhook).await.unwrap_err();

    assert!(failure.is_retryable(), "{failure}");
    assert_eq!(receiver.received().total, 0);
    for dispatcher in &mut cluster.dispatchers {
        dispatcher.start().await;
    }
    let test = shop.test_webhook(webhook).await.unwrap();
    assert_eq!(test["delivered"], true);
    assert_eq!(receiver.received().total, 1);
}
