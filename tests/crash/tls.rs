//! Mutual TLS between the services, with certificates made by the test.

use std::{fs, net::SocketAddr, process::Command};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::Value;

use crate::{
    cluster::credentials,
    files::Files,
    grpc::NOT_A_CORE,
    health::{readiness, wait_until_ready},
    program::{self, PROGRAMS},
    reserved_addr::reserve_addr,
    server::Server,
    startup_errors::assert_error,
};

/// A certificate authority, with its certificate in a file.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    file: String,
}

/// A certificate and its key in files.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Files {
    pub(crate) fn authority(&self, name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Authority {
            issuer: Issuer::new(params, key),
            file: self.write(name, 0o600, &certificate.pem()),
        }
    }

    pub(crate) fn identity(&self, name: &str, authority: &Authority, subject: &str) -> Identity {
        let params = CertificateParams::new(vec![subject.to_owned()]).unwrap();
        self.signed(name, authority, &params)
    }

    fn expired_identity(&self, name: &str, authority: &Authority, subject: &str) -> Identity {
        let mut params = CertificateParams::new(vec![subject.to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        self.signed(name, authority, &params)
    }

    fn signed(&self, name: &str, authority: &Authority, params: &CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &authority.issuer).unwrap();
        Identity {
            certificate: self.write(&format!("{name}.pem"), 0o600, &certificate.pem()),
            key: self.write(&format!("{name}.key"), 0o600, &key.serialize_pem()),
        }
    }
}

/// The flags of a program that connects to cores over TLS.
fn core_tls_flags(authority: &Authority, identity: Option<&Identity>) -> Vec<String> {
    let mut flags = vec![format!("--core-tls-ca={}", authority.file)];
    if let Some(Identity { certificate, key }) = identity {
        flags.push(format!("--core-tls-certificate={certificate}"));
        flags.push(format!("--core-tls-key={key}"));
    }
    flags
}

/// A core that requires client certificates, and a client's identity.
struct MutualTls {
    files: Files,
    /// The authority that the core trusts, and another.
    authority: Authority,
    other_authority: Authority,
    server: Identity,
    caller: Identity,
    url: String,
    clients: Value,
    core: Server,
}

impl MutualTls {
    async fn start() -> Self {
        let files = Files::new();
        let authority = files.authority("authority.pem");
        let other_authority = files.authority("other_authority.pem");
        let server = files.identity("core", &authority, "127.0.0.1");
        let caller = files.identity("caller", &authority, "gateway.example");
        let (mut arguments, clients) = files.bootstrap();
        let addr = reserve_addr();
        arguments.extend([
            "--geocoder=none".to_owned(),
            format!("--listen={addr}"),
            format!("--tls-certificate={}", server.certificate),
            format!("--tls-key={}", server.key),
            format!("--tls-client-ca={}", authority.file),
        ]);
        let mut core = Server::core("core", arguments);
        core.start().await;
        Self {
            files,
            authority,
            other_authority,
            server,
            caller,
            url: format!("https://{addr}"),
            clients,
            core,
        }
    }

    fn client(&self, pointer: &str) -> &str {
        self.clients.pointer(pointer).unwrap().as_str().unwrap()
    }

    /// A gateway that trusts this authority.
    fn gateway(&self, addr: SocketAddr, authority: &Authority) -> Server {
        let own = vec![
            format!("--core-url={}", self.url),
            format!("--listen={addr}"),
        ];
        let arguments = [own, core_tls_flags(authority, Some(&self.caller))].concat();
        Server::gateway("gateway", arguments)
    }

    fn dispatcher(&self, health: SocketAddr) -> Server {
        let own = vec![
            format!("--core-url={}", self.url),
            format!("--health-listen={health}"),
            format!("--client-key={}", self.client("/dispatcher_client/api_key")),
        ];
        let arguments = [own, core_tls_flags(&self.authority, Some(&self.caller))].concat();
        let ready = ("stream from core is open", 1);
        Server::new("dispatcher", &PROGRAMS.dispatcher, arguments, ready).with_variable(
            "DELIVERY_CLIENT_SECRET",
            self.client("/dispatcher_client/api_secret"),
        )
    }

    /// A dispatcher with a URL that lacks the `s` of `https`.
    fn plaintext_dispatcher(&self, url: &str) -> Server {
        let arguments = vec![
            format!("--core-url={url}"),
            format!("--client-key={}", self.client("/dispatcher_client/api_key")),
        ];
        let ready = ("stream from core failed", 1);
        Server::new("dispatcher", &PROGRAMS.dispatcher, arguments, ready).with_variable(
            "DELIVERY_CLIENT_SECRET",
            self.client("/dispatcher_client/api_secret"),
        )
    }

    /// A command that creates a store.
    fn operator(&self, flags: Vec<String>) -> Command {
        let client = credentials(&self.clients["operator_client"]);
        let mut command = PROGRAMS.operator_command(&self.url, &client);
        command
            .args(["stores", "create", "--name=Shop", "--json"])
            .args(flags);
        command
    }

    #[track_caller]
    fn assert_connect_error(&self, flags: Vec<String>, reason: &str) {
        let url = &self.url;
        assert_error(
            &mut self.operator(flags),
            1,
            &format!("cannot connect to {url} over TLS: {reason}"),
        );
    }
}

const UNTRUSTED: &str =
    "its certificate is not issued by a trusted authority: set --core-tls-ca to the right one";

#[tokio::test]
async fn a_certificate_error_says_what_to_change() {
    let setup = MutualTls::start().await;
    let MutualTls {
        authority,
        other_authority,
        caller,
        ..
    } = &setup;
    let untrusted = setup
        .files
        .identity("untrusted", other_authority, "gateway.example");

    program::json(&mut setup.operator(core_tls_flags(authority, Some(caller))));
    setup.assert_connect_error(core_tls_flags(other_authority, Some(caller)), UNTRUSTED);
    setup.assert_connect_error(Vec::new(), UNTRUSTED);
    setup.assert_connect_error(
        core_tls_flags(authority, None),
        "it requires a client certificate: set --core-tls-certificate and --core-tls-key",
    );
    setup.assert_connect_error(
        core_tls_flags(authority, Some(&untrusted)),
        "it rejects the client certificate (UnknownCA): set --core-tls-certificate to one issued by an authority in its --tls-client-ca",
    );
    let expired = setup
        .files
        .expired_identity("expired", authority, "gateway.example");
    setup.assert_connect_error(
        core_tls_flags(authority, Some(&expired)),
        "our client certificate has expired: renew the file in --core-tls-certificate",
    );
    let plaintext = setup.url.replace("https:", "http:");
    let rejected = program::output(setup.operator(Vec::new()).args(["--core-url", &plaintext]));
    let printed = String::from_utf8_lossy(&rejected.stderr);
    let cause = "cannot get an access token for the operator: ";
    assert!(
        printed.starts_with(&format!("{plaintext} {NOT_A_CORE}: {cause}")),
        "{printed}"
    );
    assert_eq!(rejected.status.code(), Some(1));
    let mut dispatcher = setup.plaintext_dispatcher(&plaintext);
    dispatcher.start().await;
    dispatcher
        .wait_for_line("core did not issue an access token")
        .await;
    // The command's call and the dispatcher's: what they print after that depends on when core closes.
    let plaintext_refused = "error=received corrupt message of type InvalidContentType";
    setup.core.wait_for_lines(plaintext_refused, 2).await;
    assert_error(
        &mut setup.operator(vec!["--core-tls-ca=/nowhere.pem".to_owned()]),
        1,
        "TLS for calls to cores cannot be set up: cannot read /nowhere.pem: No such file or directory (os error 2)",
    );
}

#[tokio::test]
async fn services_authenticate_each_other_and_reload_renewed_certificates() {
    let mut setup = MutualTls::start().await;
    let [gateway_addr, other_gateway_addr, health] = [(); 3].map(|()| reserve_addr());
    let mut gateway = setup.gateway(gateway_addr, &setup.authority);
    let mut other_gateway = setup.gateway(other_gateway_addr, &setup.other_authority);
    let mut dispatcher = setup.dispatcher(health);
    for process in [&mut gateway, &mut other_gateway, &mut dispatcher] {
        process.start().await;
    }
    wait_until_ready(gateway_addr).await;
    wait_until_ready(health).await;
    assert_eq!(readiness(other_gateway_addr).await.0, "503");

    // Issued by the authority that the other gateway trusts.
    let renewed = setup
        .files
        .identity("renewed", &setup.other_authority, "127.0.0.1");
    fs::rename(&renewed.key, &setup.server.key).unwrap();
    fs::rename(&renewed.certificate, &setup.server.certificate).unwrap();

    wait_until_ready(other_gateway_addr).await;
    program::json(&mut setup.operator(core_tls_flags(&setup.other_authority, Some(&setup.caller))));
    setup.assert_connect_error(
        core_tls_flags(&setup.authority, Some(&setup.caller)),
        UNTRUSTED,
    );
    for process in [
        &mut gateway,
        &mut other_gateway,
        &mut dispatcher,
        &mut setup.core,
    ] {
        assert_eq!(process.terminate().await.code(), Some(0));
    }
}
