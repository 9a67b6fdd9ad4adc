//! Checks of the public URL, of the certificates that the platform presents, and of where webhooks may
//! go.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::Path,
};

use core_service::doctor::{Check, Finding, Status};
use delivery::{Clock, Settings, is_loopback};
use process::{
    logs::error_message,
    tls::{EXPIRY_NOTICE, Server, ServerFiles, certificates, not_after},
};
use url::Url;

use super::host::running;
use crate::cli::http_probe;

/// Link-local; it gives credentials to every process that reaches it.
const CLOUD_METADATA: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));

/// `data_dir` is that of an all-in-one.
pub(super) async fn check(
    settings: &'static Settings,
    data_dir: Option<&'static Path>,
) -> Vec<Check> {
    let (rest, grpc) = (settings.tls.files(), settings.grpc_tls.of_core().files());
    let (url, rest, grpc, egress) = tokio::join!(
        Check::run("public URL", async move {
            let mut finding = Finding::from(public_url(settings, data_dir).await);
            // Gateways that run as separate processes may be reachable for clients only.
            if data_dir.is_none() && finding.status == Status::Failure {
                finding.status = Status::Warning;
            }
            finding
        }),
        Check::run("REST certificate", async { certificate(rest) }),
        Check::run("gRPC certificate", async { certificate(grpc) }),
        Check::run("egress policy", async { egress(settings) }),
    );
    vec![url, rest, grpc, egress]
}

async fn public_url(settings: &Settings, data_dir: Option<&Path>) -> anyhow::Result<Finding> {
    let listen = settings.rest_listen;
    let Some(url) = &settings.public_url else {
        if listen.ip().is_loopback() {
            return Ok(Finding::skipped(format!("none: clients use {listen}")));
        }
        return Ok(Finding::warning(
            format!("none, but {listen} is not loopback: links and tokens have the listen address"),
            "set --public-url to the URL that clients use",
        ));
    };
    if data_dir.is_some_and(|data_dir| running(data_dir).is_none()) {
        return Ok(Finding::skipped("nothing runs in the data directory"));
    }
    let base = url.as_str().trim_end_matches('/');
    let api = Url::parse(&format!("{base}/api"))?;
    Ok(match http_probe::get_verified(&api).await {
        Err(error) => Finding::failure(
            error_message(&error),
            "start the platform, renew its certificate, or correct DNS, the proxy or --public-url",
        ),
        // Without a token.
        Ok(response) if !matches!(response.status, 200 | 401) => Finding::failure(
            format!("{api} responds with {}", response.status),
            "let the proxy pass all paths to the gateway, or correct --public-url",
        ),
        Ok(response) => match &response.certificate {
            Some(certificate) => validity(base, certificate),
            None if is_loopback(url) => Finding::ok(format!("{base} responds")),
            None => Finding::warning(
                format!("clients send secrets and tokens to {base} unencrypted"),
                "serve https, by --tls-certificate or a proxy, and set --public-url to it",
            ),
        },
    })
}

/// The certificate of a listener, whose files are opened as at its start.
fn certificate(files: Option<ServerFiles>) -> anyhow::Result<Finding> {
    let Some(files) = files else {
        return Ok(Finding::skipped("none"));
    };
    let file = files.certificate.clone();
    Server::open(files, &[])?;
    let chain = certificates(&file)?;
    Ok(match chain.first() {
        Some(first) => validity(&file.display().to_string(), first),
        None => Finding::skipped("none"),
    })
}

/// How long a certificate is valid.
fn validity(name: &str, certificate: &[u8]) -> Finding {
    let Some(end) = not_after(certificate) else {
        return Finding::ok(format!("{name} has a certificate"));
    };
    let left = end.duration_since(Clock::system().now());
    let found = format!("the certificate of {name} is valid until {end}");
    if left.is_negative() {
        let expired = format!("the certificate of {name} expired at {end}");
        Finding::failure(expired, "renew it")
    } else if left < EXPIRY_NOTICE {
        Finding::warning(found, "renew it")
    } else {
        Finding::ok(found)
    }
}

/// Where any store can have notifications sent.
fn egress(settings: &Settings) -> Finding {
    let policy = delivery::egress(settings);
    if settings.has_demo_permissions() {
        return Finding::ok(
            "that of the demo, which only this machine can reach: http and loopback are allowed",
        );
    }
    let sensitive = [
        (IpAddr::V4(Ipv4Addr::LOCALHOST), "this machine"),
        (IpAddr::V6(Ipv6Addr::LOCALHOST), "this machine"),
        (CLOUD_METADATA, "the metadata service of clouds"),
    ];
    for (address, name) in sensitive {
        if policy.check_addr((address, 80).into()).is_ok() {
            return Finding::warning(
                format!("stores can have notifications sent to {name} ({address})"),
                "narrow --allow-network, or add --deny-network",
            );
        }
    }
    if policy.allow_http {
        return Finding::warning(
            "webhooks may have http:// URLs: their contents can be read and changed on the way",
            "remove --allow-http",
        );
    }
    Finding::ok("https only, and neither to this machine nor to metadata services")
}
