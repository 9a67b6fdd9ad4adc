//! Test sends of webhooks: sends a sample over a separate connection and measures each phase.

use std::{error::Error as _, iter, sync::Arc, time::Duration};

use egress::Denied;
use futures_util::FutureExt as _;
use http::Uri;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use proto::{Notification, TestOutcome};
use rustls::ProtocolVersion;
use tower::{ServiceExt as _, service_fn};

use crate::{
    address_guard::{self, GuardedStream},
    connector::{self, Connector},
    sender::{self, Error, Sender},
    trace::Trace,
};

/// Sends a sample and measures its phases.
pub(crate) async fn send_sample(sender: &Sender, test: Notification) -> TestOutcome {
    let trace = Arc::new(Trace::start());
    let connector = sender.traced(&trace);
    let traced = service_fn({
        let trace = Arc::clone(&trace);
        move |uri| connect(connector.clone(), uri, Arc::clone(&trace)).boxed()
    });
    let client = sender::client(traced, 0, sender.timeout());

    let (outcome, error) = sender
        .attempt(test, |request| client.request(request))
        .await;

    let phases = trace.phases();
    let elapsed = |from: Option<Duration>, to: Option<Duration>| {
        prost_types::Duration::try_from(to?.checked_sub(from?)?).ok()
    };
    TestOutcome {
        outcome: Some(outcome),
        detail: error.as_ref().map(detail).unwrap_or_default(),
        dns: elapsed(Some(Duration::ZERO), phases.resolved),
        connect: elapsed(phases.resolved, phases.connected),
        tls: elapsed(phases.connected, phases.handshake_completed),
        tls_version: match phases.tls_version {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            // rustls supports no other versions.
            Some(_) | None => "",
        }
        .to_owned(),
    }
}

/// Describes why an attempt failed: the error and its root cause.
fn detail(error: &Error) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    match causes.last() {
        None => error.to_string(),
        // These messages already contain their causes.
        Some(_) if matches!(error, Error::Request(_)) => error.to_string(),
        // The message must not disclose addresses of the platform's network.
        Some(cause)
            if matches!(
                cause.downcast_ref(),
                Some(address_guard::Error::Denied(Denied::Address(_)))
            ) =>
        {
            "the host has an address that is not allowed".to_owned()
        }
        Some(cause) => format!("{error}: {cause}"),
    }
}

/// Connects as for notifications, and records the TLS handshake.
async fn connect(
    connector: Connector,
    uri: Uri,
    trace: Arc<Trace>,
) -> Result<MaybeHttpsStream<TokioIo<GuardedStream>>, connector::Error> {
    let stream = connector.oneshot(uri).await?;
    if let MaybeHttpsStream::Https(stream) = &stream {
        let (_, session) = stream.inner().get_ref();
        trace.record_handshake(session.protocol_version());
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        net::{IpAddr, Ipv4Addr},
    };

    use egress::Policy;
    use proto::outcome::Failure;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::{
        Config,
        sender::tests::{LookupResult, sample},
    };

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// A sender for which every name resolves to the same result.
    fn sender_with(result: fn() -> LookupResult) -> Sender {
        let config = Config {
            egress: Policy {
                allow_http: true,
                allowed_ports: (1..=u16::MAX).collect(),
                ..Policy::default()
            },
            ..Config::default()
        };
        sender::tests::sender(&config, move || Box::pin(std::future::ready(result())))
    }

    #[tokio::test]
    async fn a_dns_failure_is_reported_with_its_cause() {
        let sender = sender_with(|| Err(io::Error::other("there is no such name")));

        let test = send_sample(&sender, sample("http://shop.example/".to_owned())).await;

        assert_eq!(test.outcome.unwrap().failure(), Failure::Dns);
        assert_eq!(test.detail, "no response: there is no such name");
        assert_eq!([test.dns, test.connect, test.tls], [None, None, None]);
    }

    #[tokio::test]
    async fn a_name_with_a_loopback_address_is_denied_without_disclosing_it() {
        let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let sender = sender_with(|| Ok(vec![LOOPBACK]));

        let url = format!("http://shop.example:{}/", addr.port());
        let test = send_sample(&sender, sample(url)).await;

        let outcome = test.outcome.unwrap();
        assert_eq!(outcome.failure(), Failure::AddressRefused);
        assert_eq!(outcome.status, None);
        assert_eq!(test.detail, "the host has an address that is not allowed");
        assert!(test.dns.is_some() && test.connect.is_none());
        // The sender did not connect: the first connection is this test's own.
        let own = TcpStream::connect(addr).await.unwrap();
        let (_, first) = listener.accept().await.unwrap();
        assert_eq!(first, own.local_addr().unwrap());
    }
}
