//! The state of one connection: its timeouts, and its exchanges, each a request and its response until
//! the last byte is written.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    pool::{Permit, Pool, Usage},
    response::Pace,
};

/// The first bytes of an HTTP/2 connection (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How many responses may begin although nothing was written since the first. hyper and h2 would keep the
/// heads of any number of responses that a peer does not read.
const MAX_UNWRITTEN: usize = 32;

/// The timeouts of connections.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From the accept to the end of a TLS handshake, and for each head over HTTP/1; over HTTP/2 for the
    /// preface.
    pub head: Duration,
    /// Without a request in flight: then the connection is closed.
    pub idle: Option<Duration>,
    /// For reading a response, beyond the time that it takes at the lowest rate.
    pub unread: Duration,
}

pub(crate) struct Connection {
    pub(crate) peer: IpAddr,
    pub(crate) memory: Arc<Pool<IpAddr>>,
    timeouts: Timeouts,
    /// Cancelled when it must end at once.
    pub(crate) ended: CancellationToken,
    permit: Permit<IpAddr>,
    /// Permits for responses until something is written: each waits in turn.
    responses: Semaphore,
    /// How many of them are taken.
    unwritten: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    exchanges: HashMap<u64, Weak<Exchange>>,
    next_id: u64,
    /// Of the last HTTP/2 request that has no task yet.
    begun: Option<CancellationToken>,
    /// What is missing of the preface, if the connection may be HTTP/2.
    preface: Option<&'static [u8]>,
    idle_since: Instant,
    /// When a head, or the preface, was begun that is incomplete.
    head_since: Option<Instant>,
    is_closing: bool,
}

/// A request and its response. Dropped once the last byte is written.
pub(crate) struct Exchange {
    pub(crate) connection: Arc<Connection>,
    id: u64,
    pub(crate) client: IpAddr,
    /// Cancelled when the exchange must end; over HTTP/1, this ends its connection.
    pub(crate) ended: CancellationToken,
    pub(crate) pace: Mutex<Pace>,
    /// None if the client may not have more.
    pub(crate) permit: Option<Permit<IpAddr>>,
}

/// What a connection must do now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Check {
    Again(Instant),
    Close,
    Abort,
}

impl Connection {
    pub(crate) fn new(
        peer: IpAddr,
        permit: Permit<IpAddr>,
        ended: CancellationToken,
        memory: Arc<Pool<IpAddr>>,
        timeouts: Timeouts,
    ) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            peer,
            memory,
            timeouts,
            ended,
            permit,
            responses: Semaphore::new(MAX_UNWRITTEN),
            unwritten: AtomicUsize::default(),
            state: Mutex::new(State {
                exchanges: HashMap::new(),
                next_id: 0,
                begun: None,
                preface: Some(PREFACE),
                idle_since: now,
                head_since: Some(now),
                is_closing: false,
            }),
        })
    }

    /// Notes bytes that were received.
    pub(crate) fn receive(&self, bytes: &[u8]) {
        let mut state = self.state.lock();
        if let Some(missing) = state.preface.filter(|missing| !missing.is_empty()) {
            let (begin, rest) = missing.split_at(missing.len().min(bytes.len()));
            state.preface = bytes.starts_with(begin).then_some(rest);
            if state.preface == Some(&[]) {
                state.head_since = None;
            }
        }
        if state.preface.is_none() && state.exchanges.is_empty() && !bytes.is_empty() {
            state.head_since.get_or_insert_with(Instant::now);
        }
    }

    /// Notes that bytes were written.
    pub(crate) fn write(&self) {
        let unwritten = self.unwritten.swap(0, Ordering::Relaxed);
        self.responses.add_permits(unwritten);
    }

    /// Waits until enough was written for one more response; ends the connection if that takes too long.
    pub(crate) async fn wait_for_write(&self) {
        match timeout(self.timeouts.unread, self.responses.acquire()).await {
            Ok(Ok(permit)) => {
                permit.forget();
                self.unwritten.fetch_add(1, Ordering::Relaxed);
            }
            _ => self.ended.cancel(),
        }
    }

    /// Begins a request of a client, which takes `bytes`. Without a permit, it is to be refused; over HTTP/2 it
    /// has ended.
    pub(crate) fn begin(
        self: &Arc<Self>,
        client: IpAddr,
        is_http2: bool,
        bytes: usize,
    ) -> Arc<Exchange> {
        let ended = if is_http2 {
            CancellationToken::new()
        } else {
            self.ended.clone()
        };
        let permit = self.memory.take(client, bytes, Usage::Busy, ended.clone());
        if is_http2 && permit.is_none() {
            ended.cancel();
        }
        let mut state = self.state.lock();
        // Under the lock, as the end of the last exchange sets it.
        self.permit.set_usage(Usage::Busy);
        if is_http2 {
            state.begun = Some(ended.clone());
        }
        let exchange = Arc::new(Exchange {
            connection: Arc::clone(self),
            id: state.next_id,
            client,
            ended,
            pace: Mutex::new(Pace::new(self.timeouts.unread)),
            permit,
        });
        state.next_id += 1;
        state
            .exchanges
            .insert(exchange.id, Arc::downgrade(&exchange));
        state.head_since = None;
        exchange
    }

    /// The token of the HTTP/2 request that began last, for its task.
    pub(crate) fn take_begun(&self) -> Option<CancellationToken> {
        self.state.lock().begun.take()
    }

    pub(crate) fn set_closing(&self) {
        let mut state = self.state.lock();
        state.is_closing = true;
        state.idle_since = Instant::now();
    }

    /// Ends the exchanges whose responses are not read, and says what to do with the connection.
    pub(crate) fn check(&self, now: Instant) -> Check {
        let exchanges: Vec<_> = {
            let state = self.state.lock();
            state.exchanges.values().filter_map(Weak::upgrade).collect()
        };
        for exchange in &exchanges {
            if exchange.pace.lock().is_unread(now) {
                if exchange.ended.is_cancelled() {
                    // Its task has ended before: only the HTTP library keeps what is unsent.
                    return Check::Abort;
                }
                exchange.ended.cancel();
            }
        }
        if !exchanges.is_empty() {
            return Check::Again(now + self.timeouts.unread / 4);
        }
        let state = self.state.lock();
        let head_end = state.head_since.map(|since| since + self.timeouts.head);
        let idle_end = self.timeouts.idle.map(|idle| state.idle_since + idle);
        if head_end.is_some_and(|end| end <= now) {
            return Check::Abort;
        }
        match idle_end {
            Some(end) if end <= now && state.is_closing => Check::Abort,
            Some(end) if end <= now => Check::Close,
            _ => Check::Again(
                [head_end, idle_end]
                    .into_iter()
                    .flatten()
                    .fold(now + self.timeouts.head, Instant::min),
            ),
        }
    }
}

/// The memory of a request.
#[derive(Clone)]
pub struct RequestMemory(pub(crate) Arc<Exchange>);

impl RequestMemory {
    /// The client that it counts against.
    pub fn client(&self) -> IpAddr {
        self.0.client
    }

    /// Counts bytes against the client until the last byte of the response is written; false if it may not
    /// have as many.
    pub fn grow(&self, bytes: usize) -> bool {
        let permit = self.0.permit.as_ref();
        permit.is_some_and(|permit| permit.grow(bytes))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut state = self.connection.state.lock();
        state.exchanges.remove(&self.id);
        if state.exchanges.is_empty() {
            state.idle_since = Instant::now();
            self.connection.permit.set_usage(Usage::Idle);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use process::metrics::Counters;
    use tokio::time::advance;

    use super::*;

    const REQUEST: usize = 10;
    const SECOND: Duration = Duration::from_secs(1);
    const TIMEOUTS: Timeouts = Timeouts {
        head: Duration::from_secs(10),
        idle: Some(Duration::from_mins(1)),
        unread: Duration::from_secs(30),
    };

    fn connection() -> Arc<Connection> {
        let pool = || Pool::new(10 * REQUEST, 10 * REQUEST, Counters::new("reason", &[]), "");
        let peer = Ipv4Addr::LOCALHOST.into();
        let permit = pool()
            .take(peer, 1, Usage::Idle, CancellationToken::new())
            .unwrap();
        Connection::new(peer, permit, CancellationToken::new(), pool(), TIMEOUTS)
    }

    /// What is to be done after this time, and not a second before.
    async fn due(connection: &Connection, seconds: u32) -> Check {
        advance(SECOND * (seconds - 1)).await;
        let before = connection.check(Instant::now());
        assert!(matches!(before, Check::Again(_)), "{before:?}");
        advance(SECOND).await;
        connection.check(Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_closed_after_the_idle_timeout_and_aborted_after_it_again() {
        for is_http2 in [false, true] {
            let connection = connection();
            drop(connection.begin(connection.peer, is_http2, REQUEST));

            assert_eq!(due(&connection, 60).await, Check::Close);
            connection.set_closing();
            assert_eq!(due(&connection, 60).await, Check::Abort);
        }
    }

    #[tokio::test]
    async fn a_request_beyond_the_share_of_its_client_gets_no_permit_and_the_others_go_on() {
        for is_http2 in [false, true] {
            let connection = connection();
            let request = || connection.begin(connection.peer, is_http2, REQUEST);
            let begun: Vec<_> = (0..10).map(|_| request()).collect();

            let refused = request();

            assert!(refused.permit.is_none());
            assert_eq!(refused.ended.is_cancelled(), is_http2);
            let is_ended = |exchange: &Arc<Exchange>| {
                exchange.permit.is_none() || exchange.ended.is_cancelled()
            };
            assert!(!begun.iter().any(is_ended) && !connection.ended.is_cancelled());
            drop((begun, refused));
            assert!(request().permit.is_some());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_a_request_in_flight_is_not_idle() {
        let connection = connection();
        let exchange = connection.begin(connection.peer, false, REQUEST);
        advance(600 * SECOND).await;
        let check = connection.check(Instant::now());
        assert!(matches!(check, Check::Again(_)), "{check:?}");

        drop(exchange);
        assert_eq!(due(&connection, 60).await, Check::Close);
    }

    #[tokio::test(start_paused = true)]
    async fn responses_wait_for_those_before_them_to_be_written_and_not_for_ever() {
        let connection = connection();
        let respond = async || {
            let response = connection.wait_for_write();
            timeout(Duration::ZERO, response).await.is_ok()
        };
        for _ in 0..2 {
            for _ in 0..MAX_UNWRITTEN {
                assert!(respond().await);
            }
            assert!(!respond().await);
            connection.write();
        }
        while respond().await {}

        let started = Instant::now();
        connection.wait_for_write().await;
        assert_eq!(started.elapsed(), TIMEOUTS.unread);
        assert!(connection.ended.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn every_head_and_the_preface_must_be_complete_in_time() {
        let silent = connection();
        assert_eq!(due(&silent, 10).await, Check::Abort);

        let http1 = connection();
        http1.receive(b"GET / HTTP/1.1");
        drop(http1.begin(http1.peer, false, REQUEST));
        advance(30 * SECOND).await;
        http1.receive(b"G");
        http1.receive(b"E");
        assert_eq!(due(&http1, 10).await, Check::Abort);

        let half = connection();
        half.receive(&PREFACE[..20]);
        assert_eq!(due(&half, 10).await, Check::Abort);

        let http2 = connection();
        for bytes in [&PREFACE[..20], &PREFACE[20..], b"settings"] {
            http2.receive(bytes);
        }
        assert_eq!(due(&http2, 60).await, Check::Close);
    }
}
