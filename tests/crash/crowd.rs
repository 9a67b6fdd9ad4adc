//! A crowd of receivers that take connections and never answer, and one that does.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use futures_util::{StreamExt as _, stream};
use tokio::{io::AsyncReadExt as _, net::TcpListener};

use crate::{
    ONE_AT_A_TIME,
    caller::{Caller, iri},
    cluster::Cluster,
    oracle::TAKEN_OVER,
    receiver::Receiver,
    say,
    server::Server,
};

/// How many clients of the shop's have how many webhooks that hang.
const CLIENTS: usize = 10;
const OF_EACH: usize = 100;
const CROWD: usize = CLIENTS * OF_EACH;

/// How many a dispatcher has in flight at most, unless told otherwise.
const PLACES: usize = 256;

/// How often one that answers is told meanwhile.
const TOLD: usize = 8;

/// What a dispatcher may need for all its places: buffers, TLS it does not use here, tasks.
const MEMORY: usize = 64 << 20;

/// Connections to those that hang.
#[derive(Clone, Default)]
struct Hanging {
    ever: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Hanging {
    /// Another receiver, with an address of its own; its URL.
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let hanging = self.clone();
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let hanging = hanging.clone();
                tokio::spawn(async move {
                    hanging.ever.fetch_add(1, SeqCst);
                    let open = hanging.open.fetch_add(1, SeqCst) + 1;
                    hanging.most.fetch_max(open, SeqCst);
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

/// All of them are owed the same completions. Were the one that answers to wait its turn behind
/// them, it would hear of the last of eight when each of the crowd had been tried many times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_receivers_that_hang_hold_up_nobody_and_take_no_more_than_their_places() {
    let _alone = ONE_AT_A_TIME.lock().await;
    // Each receiver listens on an address of its own.
    process::file_descriptors::raise();
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let (shop, board) = (cluster.shop().await, cluster.dispatch_board().await);
    let receiver = Receiver::start().await;
    shop.subscribe(receiver.url()).await;
    deliver(&shop, &board, &receiver).await;
    let hanging = Hanging::default();
    for _ in 0..CLIENTS {
        let client = cluster.create_client();
        let client = Caller::authorized(&cluster.gateway_urls, &client, "deliveries").await;
        stream::iter(0..OF_EACH)
            .for_each_concurrent(8, |_| async {
                client.subscribe(&hanging.start().await).await;
            })
            .await;
    }
    let before = cluster.dispatchers.each_ref().map(memory);

    for _ in 0..TOLD {
        deliver(&shop, &board, &receiver).await;
    }

    let (ever, most) = (hanging.ever.load(SeqCst), hanging.most.load(SeqCst));
    let grown = cluster.dispatchers.each_ref().map(memory);
    let grown: Vec<_> = std::iter::zip(grown, before)
        .map(|(now, before)| now.saturating_sub(before))
        .collect();
    say(&format!(
        "{CROWD} receivers that hang, {TOLD} deliveries: {most} connections to them at once, \
         {ever} in all; the dispatchers grew by {grown:?} bytes"
    ));
    assert!(most > 0, "nobody called those that hang");
    assert!(ever < CROWD, "{ever}: each had its turn first");
    assert!(most <= 2 * PLACES, "{most}");
    assert!(grown.iter().all(|grown| *grown < MEMORY), "{grown:?}");
}

/// Creates a delivery and completes it; returns when the receiver was told.
async fn deliver(shop: &Caller, board: &Caller, receiver: &Receiver) {
    let delivery = shop.create_delivery().await.unwrap();
    board.complete_delivery(&delivery).await;
    let owed = BTreeSet::from([iri(&delivery).to_owned()]);
    let is_told = receiver
        .wait(TAKEN_OVER, |told| told.missing(&owed).is_empty())
        .await;
    assert!(is_told, "the one that answers was not told");
}

/// Bytes of a process's that are in memory.
fn memory(server: &Server) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let resident = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kibibytes = resident.unwrap().split_whitespace().nth(1).unwrap();
    kibibytes.parse::<usize>().unwrap() * 1024
}
