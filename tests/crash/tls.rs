//! The parts over TLS, each side proving who it is: certificates of a test's own making.

use std::{fs, net::SocketAddr, os::unix::fs::PermissionsExt as _, process::Command};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    ending::{becomes_ready, ready},
    program::{self, PROGRAMS},
    server::{Server, reserve_addr},
};

/// An authority, its certificate in a file.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    file: String,
}

/// A certificate and its key in files.
struct Identity {
    certificate: String,
    key: String,
}

struct Files(TempDir);

impl Files {
    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        // Beside it first: a program that looks meanwhile sees the old one or the new one.
        let draft = self.path("draft");
        fs::write(&draft, text).unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(draft, &path).unwrap();
        path
    }

    fn authority(&self, name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Authority {
            issuer: Issuer::new(params, key),
            file: self.write(name, &certificate.pem()),
        }
    }

    fn identity(&self, name: &str, authority: &Authority, of: &str) -> Identity {
        let params = CertificateParams::new(vec![of.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &authority.issuer).unwrap();
        Identity {
            certificate: self.write(&format!("{name}.pem"), &certificate.pem()),
            key: self.write(&format!("{name}.key"), &key.serialize_pem()),
        }
    }
}

/// The flags by which a program calls cores.
fn calling(authority: &Authority, identity: Option<&Identity>) -> Vec<String> {
    let mut flags = vec![format!("--core-tls-ca={}", authority.file)];
    if let Some(Identity { certificate, key }) = identity {
        flags.push(format!("--core-tls-certificate={certificate}"));
        flags.push(format!("--core-tls-key={key}"));
    }
    flags
}

/// A core over TLS that demands certificates of its callers, and who may call it.
struct Guarded {
    files: Files,
    /// The authority of all that is right, and another.
    ours: Authority,
    theirs: Authority,
    server: Identity,
    caller: Identity,
    url: String,
    clients: Value,
    core: Server,
}

impl Guarded {
    async fn start() -> Self {
        let files = Files(tempfile::tempdir().unwrap());
        let ours = files.authority("ours.pem");
        let theirs = files.authority("theirs.pem");
        let server = files.identity("core", &ours, "127.0.0.1");
        let caller = files.identity("caller", &ours, "gateway.example");
        let database = format!("--database-url=sqlite://{}?mode=rwc", files.path("sqlite"));
        let key = format!("--master-key-file={}", files.path("master.key"));
        let clients =
            program::json(program::command(&PROGRAMS.core).args(["bootstrap", &database, &key]));
        let addr = reserve_addr();
        let arguments = vec![
            database,
            key,
            format!("--listen={addr}"),
            format!("--tls-certificate={}", server.certificate),
            format!("--tls-key={}", server.key),
            format!("--tls-client-ca={}", ours.file),
        ];
        let mut core = Server::new("core", &PROGRAMS.core, arguments, ("serving addr", 1));
        core.start().await;
        Self {
            files,
            ours,
            theirs,
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

    /// A gateway that trusts an authority.
    fn gateway(&self, addr: SocketAddr, authority: &Authority) -> Server {
        let own = vec![
            format!("--core-url={}", self.url),
            format!("--listen={addr}"),
        ];
        let arguments = [own, calling(authority, Some(&self.caller))].concat();
        let ready = ("serving the REST API", 1);
        Server::new("gateway", &PROGRAMS.gateway, arguments, ready)
    }

    fn dispatcher(&self, health: SocketAddr) -> Server {
        let own = vec![
            format!("--core-url={}", self.url),
            format!("--health-listen={health}"),
            format!("--client-key={}", self.client("/dispatcher_client/api_key")),
        ];
        let arguments = [own, calling(&self.ours, Some(&self.caller))].concat();
        let ready = ("stream from core is open", 1);
        Server::new("dispatcher", &PROGRAMS.dispatcher, arguments, ready).with_environment(
            "DELIVERY_CLIENT_SECRET",
            self.client("/dispatcher_client/api_secret"),
        )
    }

    /// A command that makes a shop.
    fn operator(&self, flags: Vec<String>) -> Command {
        let mut command = program::command(&PROGRAMS.delivery);
        command
            .args(["stores", "create", "--name=Shop", "--json"])
            .args(["--core-url", &self.url])
            .args(flags)
            .env(
                "DELIVERY_OPERATOR_KEY",
                self.client("/operator_client/api_key"),
            )
            .env(
                "DELIVERY_OPERATOR_SECRET",
                self.client("/operator_client/api_secret"),
            );
        command
    }

    #[track_caller]
    fn refuses(&self, flags: Vec<String>, advice: &str) {
        let url = &self.url;
        refused(
            &mut self.operator(flags),
            &format!("{url} cannot be spoken to over TLS: {advice}"),
        );
    }
}

#[track_caller]
fn refused(command: &mut Command, sentence: &str) {
    let output = command.output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        format!("{sentence}\n")
    );
    assert_eq!(output.status.code(), Some(1));
}

const UNTRUSTED: &str =
    "no authority that is trusted vouches for it: name the right one with --core-tls-ca";

#[tokio::test]
async fn what_is_wrong_with_a_certificate_is_told() {
    let guarded = Guarded::start().await;
    let Guarded {
        ours,
        theirs,
        caller,
        ..
    } = &guarded;
    let stranger = guarded
        .files
        .identity("stranger", theirs, "gateway.example");

    program::json(&mut guarded.operator(calling(ours, Some(caller))));
    guarded.refuses(calling(theirs, Some(caller)), UNTRUSTED);
    guarded.refuses(Vec::new(), UNTRUSTED);
    guarded.refuses(
        calling(ours, None),
        "it demands a certificate of its callers: give --core-tls-certificate and --core-tls-key",
    );
    guarded.refuses(
        calling(ours, Some(&stranger)),
        "it does not accept our certificate (UnknownCA): give one of the authority that its --tls-client-ca names in --core-tls-certificate",
    );
    refused(
        &mut guarded.operator(vec!["--core-tls-ca=/nowhere.pem".to_owned()]),
        "cores cannot be called over TLS: cannot read /nowhere.pem: No such file or directory (os error 2)",
    );
}

#[tokio::test]
async fn the_parts_prove_each_other_who_they_are_with_certificates_renewed_under_way() {
    let mut guarded = Guarded::start().await;
    let [trusting_addr, wary_addr, health] = [(); 3].map(|()| reserve_addr());
    let mut trusting = guarded.gateway(trusting_addr, &guarded.ours);
    let mut wary = guarded.gateway(wary_addr, &guarded.theirs);
    let mut dispatcher = guarded.dispatcher(health);
    for process in [&mut trusting, &mut wary, &mut dispatcher] {
        process.start().await;
    }
    becomes_ready(trusting_addr).await;
    becomes_ready(health).await;
    assert_eq!(ready(wary_addr).await.0, "503");

    // Even by another authority: the one that this gateway was told to trust.
    let renewed = guarded
        .files
        .identity("renewed", &guarded.theirs, "127.0.0.1");
    fs::rename(&renewed.key, &guarded.server.key).unwrap();
    fs::rename(&renewed.certificate, &guarded.server.certificate).unwrap();

    becomes_ready(wary_addr).await;
    program::json(&mut guarded.operator(calling(&guarded.theirs, Some(&guarded.caller))));
    guarded.refuses(calling(&guarded.ours, Some(&guarded.caller)), UNTRUSTED);
    for process in [&mut trusting, &mut wary, &mut dispatcher, &mut guarded.core] {
        assert_eq!(process.terminate().await.code(), Some(0));
    }
}
