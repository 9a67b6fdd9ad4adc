//! Adds to the outcome of a test send its phases and why it failed.

use std::{error::Error as _, iter, time::Duration};

use egress::Denied;
use proto::Outcome;
use rustls::ProtocolVersion;

use crate::{address_guard, attempt::Phases, send_error::SendError};

/// Adds the phases of an attempt, and its error if it failed.
pub(crate) fn describe(outcome: Outcome, phases: Phases, error: Option<&SendError>) -> Outcome {
    let elapsed = |from: Option<Duration>, to: Option<Duration>| {
        prost_types::Duration::try_from(to?.checked_sub(from?)?).ok()
    };
    Outcome {
        detail: error.map(detail).unwrap_or_default(),
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
        ..outcome
    }
}

/// Describes why an attempt failed: the error and its root cause.
fn detail(error: &SendError) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    match causes.last() {
        None => error.to_string(),
        // These messages already contain their causes.
        Some(_) if matches!(error, SendError::Request(_)) => error.to_string(),
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

#[cfg(test)]
mod tests {
    use std::{
        io,
        net::{IpAddr, Ipv4Addr},
    };

    use egress::Policy;
    use proto::{Notification, outcome::Failure};
    use tokio::net::{TcpListener, TcpStream};

    use crate::{
        Config,
        sender::{
            self, Sender,
            tests::{LookupResult, sample},
        },
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

    fn test(url: String) -> Notification {
        Notification {
            test: true,
            ..sample(url)
        }
    }

    #[tokio::test]
    async fn a_dns_failure_is_reported_with_its_cause() {
        let sender = sender_with(|| Err(io::Error::other("there is no such name")));

        let test = sender.send(test("http://shop.example/".to_owned())).await;

        assert_eq!(test.failure(), Failure::Dns);
        assert_eq!(test.detail, "no response: there is no such name");
        assert_eq!([test.dns, test.connect, test.tls], [None, None, None]);
    }

    #[tokio::test]
    async fn a_name_with_a_loopback_address_is_denied_without_disclosing_it() {
        let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let sender = sender_with(|| Ok(vec![LOOPBACK]));

        let url = format!("http://shop.example:{}/", addr.port());
        let test = sender.send(test(url)).await;

        assert_eq!(test.failure(), Failure::AddressRefused);
        assert_eq!(test.status, None);
        assert_eq!(test.detail, "the host has an address that is not allowed");
        assert!(test.dns.is_some() && test.connect.is_none());
        // The sender did not connect: the first connection is this test's own.
        let own = TcpStream::connect(addr).await.unwrap();
        let (_, first) = listener.accept().await.unwrap();
        assert_eq!(first, own.local_addr().unwrap());
    }

    #[tokio::test]
    async fn a_request_that_cannot_be_built_is_reported_with_its_cause_once() {
        let sender = sender_with(|| Ok(vec![LOOPBACK]));

        let test = sender
            .send(test("https://a@shop.example/".to_owned()))
            .await;

        assert_eq!(test.failure(), Failure::AddressRefused);
        assert_eq!(
            test.detail,
            "the webhook's url contains a user name or password: remove the part before `@`"
        );
    }
}
