//! Tests of webhooks: a sample is sent over a connection of its own, and how far it came is told
//! phase by phase.

use std::{
    error::Error as _,
    iter,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use egress::Refused;
use http::Uri;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use proto::{Notification, TestOutcome};
use rustls::ProtocolVersion;
use tokio::{task::JoinSet, time::Instant};
use tower::Service;

use crate::{
    address_guard::{self, GuardedStream},
    connector::{self, Connector},
    sender::{self, Error, Sender},
};

/// How many tests run at once for a core. It asks for fewer: more are not of the contract.
const MAX_TESTS: usize = 64;

/// The tests that one stream asked for. They end with it: who waits for them does so too.
pub(crate) struct WebhookTests {
    sender: Arc<Sender>,
    running: JoinSet<TestOutcome>,
    ended: Vec<TestOutcome>,
}

impl WebhookTests {
    pub(crate) fn new(sender: Arc<Sender>) -> Self {
        Self {
            sender,
            running: JoinSet::new(),
            ended: Vec::new(),
        }
    }

    pub(crate) fn begin(&mut self, test: Notification) {
        if self.running.len() >= MAX_TESTS {
            tracing::error!(test.name, "core asks for too many tests at once");
            return;
        }
        let sender = Arc::clone(&self.sender);
        self.running
            .spawn(async move { test_webhook(&sender, test).await });
    }

    /// Waits until a test has ended; none if none is running.
    pub(crate) async fn next_ended(&mut self) -> Option<()> {
        match self.running.join_next().await? {
            Ok(outcome) => self.ended.push(outcome),
            Err(error) => tracing::error!(%error, "a test was lost"),
        }
        Some(())
    }

    /// Whether there is anything to report.
    pub(crate) fn has_outcomes(&self) -> bool {
        !self.ended.is_empty()
    }

    pub(crate) fn take_outcomes(&mut self) -> Vec<TestOutcome> {
        std::mem::take(&mut self.ended)
    }

    /// Whether nothing runs or waits to be reported.
    pub(crate) fn is_reported(&self) -> bool {
        self.running.is_empty() && self.ended.is_empty()
    }
}

/// Sends a sample.
async fn test_webhook(sender: &Sender, test: Notification) -> TestOutcome {
    let trace = Arc::new(Trace::start());
    let connector = TracedConnector {
        connector: sender.traced(&trace),
        trace: Arc::clone(&trace),
    };
    let client = sender::client(connector, 0, sender.timeout());

    let (outcome, error) = sender
        .attempt(test, |request| client.request(request))
        .await;

    let phases = trace.phases();
    let took = |from: Option<Duration>, to: Option<Duration>| {
        prost_types::Duration::try_from(to?.checked_sub(from?)?).ok()
    };
    TestOutcome {
        outcome: Some(outcome),
        detail: error.as_ref().map(detail).unwrap_or_default(),
        dns: took(Some(Duration::ZERO), phases.resolved),
        connect: took(phases.resolved, phases.connected),
        tls: took(phases.connected, phases.secured),
        tls_version: match phases.tls_version {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            // There are no others that rustls speaks.
            Some(_) | None => "",
        }
        .to_owned(),
    }
}

/// Why an attempt failed, for people: the error, and what it comes from in the end.
fn detail(error: &Error) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    match causes.last() {
        None => error.to_string(),
        // It says all there is.
        Some(_) if matches!(error, Error::Request(_)) => error.to_string(),
        // What a name stands for in the platform's own network is nobody else's to know.
        Some(cause)
            if matches!(
                cause.downcast_ref(),
                Some(address_guard::Error::Refused(Refused::Address(_)))
            ) =>
        {
            "the host has an address that is not on the public internet".to_owned()
        }
        Some(cause) => format!("{error}: {cause}"),
    }
}

/// Notes how far one connection comes.
#[derive(Debug)]
pub(crate) struct Trace {
    started: Instant,
    phases: Mutex<Phases>,
}

/// When each phase was passed, from the start; none if it was not.
#[derive(Clone, Copy, Debug, Default)]
struct Phases {
    resolved: Option<Duration>,
    connected: Option<Duration>,
    secured: Option<Duration>,
    tls_version: Option<ProtocolVersion>,
}

impl Trace {
    fn start() -> Self {
        Self {
            started: Instant::now(),
            phases: Mutex::default(),
        }
    }

    pub(crate) fn resolved(&self) {
        self.note(|phases, now| phases.resolved = Some(now));
    }

    pub(crate) fn connected(&self) {
        self.note(|phases, now| phases.connected = Some(now));
    }

    fn secured(&self, version: Option<ProtocolVersion>) {
        self.note(|phases, now| {
            phases.secured = Some(now);
            phases.tls_version = version;
        });
    }

    fn phases(&self) -> Phases {
        *self.lock()
    }

    fn note(&self, note: impl FnOnce(&mut Phases, Duration)) {
        let now = self.started.elapsed();
        note(&mut self.lock(), now);
    }

    /// What is behind the lock is changed by what can't panic.
    fn lock(&self) -> MutexGuard<'_, Phases> {
        self.phases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects as notifications do, and notes when TLS is there.
#[derive(Clone)]
struct TracedConnector {
    connector: Connector,
    trace: Arc<Trace>,
}

impl Service<Uri> for TracedConnector {
    type Response = MaybeHttpsStream<TokioIo<GuardedStream>>;
    type Error = connector::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.connector.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.connector.call(uri);
        let trace = Arc::clone(&self.trace);
        Box::pin(async move {
            let stream = connecting.await?;
            if let MaybeHttpsStream::Https(stream) = &stream {
                let (_, session) = stream.inner().get_ref();
                trace.secured(session.protocol_version());
            }
            Ok(stream)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        net::{IpAddr, Ipv4Addr},
    };

    use proto::outcome::Failure;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::{Config, resolver::Resolver, trust};

    const SECRET: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn sample(url: String) -> Notification {
        Notification {
            name: "notifications/01932e5c-9f4a-7000-8000-00000000000a".to_owned(),
            url,
            secrets: vec![SECRET.to_owned()],
            event: "delivery.completed".to_owned(),
            object: "deliveries/1".to_owned(),
            ..Notification::default()
        }
    }

    /// One to which every name stands for the same.
    fn sender_with(answer: fn() -> io::Result<Vec<IpAddr>>) -> Sender {
        let config = Config {
            allow_http: true,
            ..Config::default()
        };
        let tls = trust::tls(rustls::RootCertStore::empty()).unwrap();
        let resolver = Resolver::of(move |_| Box::pin(std::future::ready(answer())));
        Sender::new(&config, tls, resolver).unwrap()
    }

    #[tokio::test]
    async fn a_name_that_cannot_be_resolved_says_so() {
        let sender = sender_with(|| Err(io::Error::other("there is no such name")));

        let told = test_webhook(&sender, sample("http://shop.example/".to_owned())).await;

        assert_eq!(told.outcome.unwrap().failure(), Failure::Dns);
        assert_eq!(told.detail, "no answer: there is no such name");
        assert_eq!([told.dns, told.connect, told.tls], [None, None, None]);
    }

    /// A name that stands for an address of the platform's own network tells nobody which.
    #[tokio::test]
    async fn a_name_at_a_private_address_is_not_called_nor_the_address_told() {
        let canary = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
        let addr = canary.local_addr().unwrap();
        let sender = sender_with(|| Ok(vec![LOOPBACK]));

        let url = format!("http://shop.example:{}/", addr.port());
        let told = test_webhook(&sender, sample(url)).await;

        let outcome = told.outcome.unwrap();
        assert_eq!(outcome.failure(), Failure::AddressRefused);
        assert_eq!(outcome.status, None);
        assert_eq!(
            told.detail,
            "the host has an address that is not on the public internet"
        );
        assert!(told.dns.is_some() && told.connect.is_none());
        // The first to call is this test itself.
        let own = TcpStream::connect(addr).await.unwrap();
        let (_, first) = canary.accept().await.unwrap();
        assert_eq!(first, own.local_addr().unwrap());
    }
}
