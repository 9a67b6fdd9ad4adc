//! Denied addresses are not connected to in any notation.

use proto::outcome::Failure;
use webhook_dispatcher::Config;

use crate::harness::{Canary, attempt_with, failed};

#[tokio::test]
async fn no_notation_of_loopback_is_connected_to() {
    let canary = Canary::start().await;
    let port = canary.addr().port();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "localhost",
        "hook.localhost",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "0.0.0.0",
    ] {
        let url = format!("http://{host}:{port}/");

        let outcome = attempt_with(|config| config.egress.allowed_networks.clear(), &url).await;

        assert_eq!(outcome, failed(Failure::AddressRefused, None), "{host}");
    }
    assert!(canary.has_no_connections().await);
}

/// Checked for each connection, with and without TLS. One of the addresses is permitted, one
/// denied.
#[tokio::test]
async fn a_name_with_a_denied_address_is_not_connected_to() {
    let canary = Canary::start().await;
    let port = canary.addr().port();
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://localhost:{port}/");
        let only_ipv6 = |config: &mut webhook_dispatcher::Config| {
            config.egress.allowed_networks = vec!["::1".parse().unwrap()];
        };

        let outcome = attempt_with(only_ipv6, &url).await;

        assert_eq!(outcome, failed(Failure::AddressRefused, None), "{scheme}");
    }
    assert!(canary.has_no_connections().await);
}

#[tokio::test]
async fn a_denied_network_port_or_scheme_is_not_connected_to() {
    let canary = Canary::start().await;
    let port = canary.addr().port();
    let url = format!("http://127.0.0.1:{port}/");

    let deny = |config: &mut Config| {
        config.egress.denied_networks = vec!["127.0.0.1".parse().unwrap()];
    };
    let outcome = attempt_with(deny, &url).await;
    assert_eq!(outcome, failed(Failure::AddressRefused, None));

    let of_a_name = format!("http://shop.example:{port}/");
    let outcome = attempt_with(|_| {}, &of_a_name).await;
    assert_eq!(outcome, failed(Failure::AddressRefused, None));

    let outcome = attempt_with(|config| config.egress.allow_http = false, &url).await;
    assert_eq!(outcome, failed(Failure::AddressRefused, None));

    assert!(canary.has_no_connections().await);
}
