//! Many receivers that accept connections and never respond, and one that responds.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use tokio::{io::AsyncReadExt as _, net::TcpListener};

use crate::{
    all_processors,
    caller::{Caller, iri},
    cluster::Cluster,
    counting_receiver::CountingReceiver,
    report,
    server::Server,
};

/// The shop's clients, and the webhooks of each.
const CLIENTS: usize = 10;
const WEBHOOKS_PER_CLIENT: usize = 100;
const HANGING_RECEIVERS: usize = CLIENTS * WEBHOOKS_PER_CLIENT;

/// The default maximum of notifications in flight in a dispatcher.
const CAPACITY: usize = 256;

/// Deliveries completed while the others hang; the responding receiver is notified of each.
const DELIVERIES: usize = 8;

/// The timeout of an attempt. A notification that had to wait until an attempt at a hanging receiver
/// ends would be sent only after it.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);

/// The limit of a dispatcher's memory growth at full capacity, in bytes: buffers, TLS, tasks.
const MAX_GROWTH: usize = 64 << 20;

/// Counts connections to the hanging receivers.
#[derive(Clone, Default)]
struct HangingReceivers {
    total: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    max_open: Arc<AtomicUsize>,
}

impl HangingReceivers {
    /// Starts another receiver on its own address; returns its URL.
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let hanging = self.clone();
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let hanging = hanging.clone();
                tokio::spawn(async move {
                    hanging.total.fetch_add(1, SeqCst);
                    let open = hanging.open.fetch_add(1, SeqCst) + 1;
                    hanging.max_open.fetch_max(open, SeqCst);
                    let mut buffer = [0; 1024];
                    while connection
                        .read(&mut buffer)
                        .await
                        .is_ok_and(|count| count > 0)
                    {}
                    hanging.open.fetch_sub(1, SeqCst);
                });
            }
        });
        url
    }
}

/// All receivers get the same notifications. If they were sent in order of creation, the responding
/// receiver would get its last one after many timeouts of the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_hanging_receivers_delay_no_other_and_stay_within_capacity() {
    let _processors = all_processors().await;
    // Each receiver has a listener.
    process::listen::raise_file_limit();
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let (shop, board) = (cluster.shop().await, cluster.dispatch_board().await);
    let receiver = CountingReceiver::subscribed(&shop).await;
    deliver(&shop, &board, &receiver).await;
    let hanging = HangingReceivers::default();
    for _ in 0..CLIENTS {
        let client = cluster.create_client();
        let client = Caller::authorized(&cluster.gateway_urls, &client, "deliveries").await;
        stream::iter(0..WEBHOOKS_PER_CLIENT)
            .for_each_concurrent(8, |_| async {
                client.subscribe(&hanging.start().await).await;
            })
            .await;
    }
    let before = cluster.dispatchers.each_ref().map(memory);

    for _ in 0..DELIVERIES {
        deliver(&shop, &board, &receiver).await;
    }

    let (total, max_open) = (hanging.total.load(SeqCst), hanging.max_open.load(SeqCst));
    let after = cluster.dispatchers.each_ref().map(memory);
    let growth: Vec<_> = std::iter::zip(after, before)
        .map(|(after, before)| after.saturating_sub(before))
        .collect();
    report(&format!(
        "{HANGING_RECEIVERS} hanging receivers, {DELIVERIES} deliveries: {max_open} connections to them at once, \
         {total} in total; the dispatchers grew by {growth:?} bytes"
    ));
    assert!(max_open > 0, "no hanging receiver was called");
    assert!(
        total < HANGING_RECEIVERS,
        "all {total} hanging receivers were called first"
    );
    assert!(max_open <= 2 * CAPACITY, "{max_open}");
    assert!(growth.iter().all(|bytes| *bytes < MAX_GROWTH), "{growth:?}");
}

/// Creates and completes a delivery; waits until the receiver is notified.
async fn deliver(shop: &Caller, board: &Caller, receiver: &CountingReceiver) {
    let delivery = shop.create_delivery().await.unwrap();
    board.complete_delivery(&delivery).await;
    let expected = BTreeSet::from([iri(&delivery).to_owned()]);
    let is_notified = receiver
        .wait(ATTEMPT_TIMEOUT, |received| {
            received.missing(&expected).is_empty()
        })
        .await;
    assert!(
        is_notified,
        "the responding receiver was not notified within {ATTEMPT_TIMEOUT:?}"
    );
}

/// The resident memory of a process, in bytes.
fn memory(server: &Server) -> usize {
    usize::try_from(server.status("VmRSS:") * 1024).unwrap()
}
