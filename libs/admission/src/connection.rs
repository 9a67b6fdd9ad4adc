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
    /// How many of them are executed.
    executed: usize,
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
    /// Changed under the lock of the connection's state.
    phase: Mutex<Phase>,
    /// None if the client may not have more.
    permit: Option<Permit<IpAddr>>,
    /// How much of the permit is for a response that is not there yet, in bytes.
    pub(crate) reserved: AtomicUsize,
}

/// How far an exchange is; it never goes back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// The peer sends the request.
    Receiving,
    /// The peer waits for the response.
    Executing,
    /// The peer reads the response.
    Responding,
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
                executed: 0,
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

    /// Begins a request of a client, which takes `bytes`. One that is not admitted is to be refused; over HTTP/2 it
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
        let permit = self
            .memory
            .take(client, bytes, Usage::Waiting, ended.clone());
        if is_http2 && permit.is_none() {
            ended.cancel();
        }
        let mut state = self.state.lock();
        if is_http2 {
            state.begun = Some(ended.clone());
        }
        let exchange = Arc::new(Exchange {
            connection: Arc::clone(self),
            id: state.next_id,
            client,
            ended,
            pace: Mutex::new(Pace::new(self.timeouts.unread)),
            phase: Mutex::new(Phase::Receiving),
            permit,
            reserved: AtomicUsize::default(),
        });
        state.next_id += 1;
        state
            .exchanges
            .insert(exchange.id, Arc::downgrade(&exchange));
        state.head_since = None;
        self.note_progress(&state);
        exchange
    }

    /// Begins the usage that the connection has now, also if it was the same before: its peer has sent or read.
    fn note_progress(&self, state: &State) {
        self.permit.set_usage(if state.executed > 0 {
            Usage::Busy
        } else if state.exchanges.is_empty() {
            Usage::Idle
        } else {
            Usage::Waiting
        });
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

    /// Whether there is memory for the request. The service must refuse one without, whose response has no body.
    pub fn is_admitted(&self) -> bool {
        self.0.is_admitted()
    }

    /// Notes that the whole request was received: it is evicted after those whose peers do not send or read.
    pub fn set_received(&self) {
        self.0.enter(Phase::Executing);
    }

    /// Counts bytes against the client until the last byte of the response is written; false if it may not
    /// have as many.
    pub fn grow(&self, bytes: usize) -> bool {
        self.0.grow(bytes)
    }

    /// Like [`Self::grow`], for a response that is collected before it is sent: it does not count again.
    pub fn reserve_response(&self, bytes: usize) -> bool {
        let is_permitted = self.0.grow(bytes);
        if is_permitted {
            self.0.reserved.fetch_add(bytes, Ordering::Relaxed);
        }
        is_permitted
    }
}

impl Exchange {
    pub(crate) fn is_admitted(&self) -> bool {
        self.permit.is_some()
    }

    pub(crate) fn grow(&self, bytes: usize) -> bool {
        let permit = self.permit.as_ref();
        permit.is_some_and(|permit| permit.grow(bytes))
    }

    /// Enters a phase, or notes progress in it. Does nothing once a later phase has begun.
    pub(crate) fn enter(&self, phase: Phase) {
        let mut state = self.connection.state.lock();
        let mut current = self.phase.lock();
        if phase < *current {
            return;
        }
        state.executed -= usize::from(*current == Phase::Executing);
        state.executed += usize::from(phase == Phase::Executing);
        *current = phase;
        self.connection.note_progress(&state);
        if let Some(permit) = &self.permit {
            permit.set_usage(if phase == Phase::Executing {
                Usage::Busy
            } else {
                Usage::Waiting
            });
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut state = self.connection.state.lock();
        state.exchanges.remove(&self.id);
        state.executed -= usize::from(*self.phase.get_mut() == Phase::Executing);
        if state.exchanges.is_empty() {
            state.idle_since = Instant::now();
        }
        self.connection.note_progress(&state);
    }
}

#[cfg(test)]
mod tests;
