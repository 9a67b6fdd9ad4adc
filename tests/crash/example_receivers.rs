//! The receivers in `examples/receivers`, against genuine, forged, stale and repeated requests.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http_body_util::Full;
use hyper::{Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use sha2::Sha256;
use tempfile::TempDir;

use crate::{
    installed::{find, find_optional},
    program::{PROGRAMS, command, output},
    reserved_addr::reserve_addr,
};

const START_TIMEOUT: Duration = Duration::from_mins(1);
const PLATFORM_HEADER: &str = "X-Service-Signature";
const BODY: &str = r#"{"data":{"object":"\/api\/deliveries\/1","event":"delivery.completed"}}"#;
const KEY: [u8; 32] = [7; 32];

/// A running receiver. Killed when dropped.
struct ExampleReceiver {
    process: Child,
    addr: SocketAddr,
    directory: TempDir,
}

impl ExampleReceiver {
    /// Starts a receiver that checks `header`, or the Standard Webhooks headers.
    fn start(mut command: Command, header: Option<&str>) -> Self {
        let (addr, directory) = (reserve_addr(), tempfile::tempdir().unwrap());
        let printed = std::fs::File::create(directory.path().join("printed")).unwrap();
        if command.get_program() == "php" {
            command.args(["-S", &addr.to_string()]);
            command.arg(example("receiver.php"));
        }
        if command.get_envs().all(|(name, _)| name != "WEBHOOK_SECRET") {
            command.env("WEBHOOK_SECRET", BASE64_STANDARD.encode(KEY));
        }
        command
            .env("PORT", addr.port().to_string())
            .env("PROCESSED_DIR", directory.path())
            .stdout(printed.try_clone().unwrap())
            .stderr(printed)
            .stdin(Stdio::null());
        if let Some(header) = header {
            command.env("PLATFORM_HEADER", header);
        }
        let process = command.spawn().unwrap();
        let receiver = Self {
            process,
            addr,
            directory,
        };
        let started = Instant::now();
        while TcpStream::connect(addr).is_err() {
            assert!(started.elapsed() < START_TIMEOUT, "{}", receiver.printed());
            std::thread::yield_now();
        }
        receiver
    }

    fn printed(&self) -> String {
        let mut printed = String::new();
        std::fs::File::open(self.directory.path().join("printed"))
            .and_then(|mut file| file.read_to_string(&mut printed))
            .unwrap();
        printed
    }

    /// How many notifications it has processed.
    fn processed(&self) -> usize {
        self.printed().matches(&format!("genuine: {BODY}")).count()
    }

    /// Sends a part of a request, and ends the connection.
    fn send_a_part(&self) {
        let mut connection = TcpStream::connect(self.addr).unwrap();
        let part = "POST /hook HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{";
        connection.write_all(part.as_bytes()).unwrap();
    }

    /// The status of its response to a notification.
    async fn send(&self, headers: &[(&str, String)], body: &str) -> u16 {
        let stream = tokio::net::TcpStream::connect(self.addr).await.unwrap();
        let (mut client, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::post("/hook").header("Host", self.addr.to_string());
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let body = Full::new(Bytes::from(body.to_owned()));
        let response = client.send_request(request.body(body).unwrap()).await;
        response.unwrap().status().as_u16()
    }
}

impl Drop for ExampleReceiver {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn example(name: &str) -> std::path::PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/receivers");
    examples.join(name)
}

fn sign(key: &[u8], message: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(message.as_bytes());
    BASE64_STANDARD.encode(mac.finalize().into_bytes())
}

#[expect(
    clippy::disallowed_methods,
    reason = "receivers compare with the real time"
)]
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap().as_secs()
}

/// The Standard Webhooks headers of a notification.
fn standard(id: &str, sent_at: &str, key: &[u8]) -> [(&'static str, String); 3] {
    let signature = sign(key, &format!("{id}.{sent_at}.{BODY}"));
    [
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", sent_at.to_owned()),
        ("webhook-signature", format!("v1,{signature}")),
    ]
}

async fn check_standard_signatures(command: Command) {
    let receiver = ExampleReceiver::start(command, None);
    let now = now();
    let sent = |id: &str, seconds: u64| standard(id, &seconds.to_string(), &KEY);
    receiver.send_a_part();

    let genuine = sent("a", now);
    assert_eq!(receiver.send(&genuine, BODY).await, 204);
    assert_eq!(receiver.processed(), 1, "{}", receiver.printed());
    assert_eq!(receiver.send(&genuine, BODY).await, 204, "a repetition");
    assert_eq!(receiver.send(&sent("a", now - 60), BODY).await, 204);
    assert_eq!(receiver.processed(), 1, "{}", receiver.printed());

    let mut rotated = sent("b", now);
    rotated[2].1 = format!("v1,{} {}", sign(&[8; 32], BODY), rotated[2].1);
    assert_eq!(
        receiver.send(&rotated, BODY).await,
        204,
        "during a rotation"
    );
    assert_eq!(receiver.processed(), 2);

    let mut with_another_id = sent("c", now);
    with_another_id[0].1 = String::from("d");
    let mut unversioned = sent("c", now);
    unversioned[2].1 = unversioned[2].1.replace("v1,", "");
    let text = BASE64_STANDARD.encode(KEY);
    let keyed_with_text = standard("c", &now.to_string(), text.as_bytes());
    let forged = [
        ("stale", sent("c", now - 3600).to_vec(), BODY.to_owned()),
        (
            "of the future",
            sent("c", now + 3600).to_vec(),
            BODY.to_owned(),
        ),
        (
            "another body",
            sent("c", now).to_vec(),
            BODY.replace('1', "2"),
        ),
        ("another id", with_another_id.to_vec(), BODY.to_owned()),
        (
            "another key",
            standard("c", &now.to_string(), &[8; 32]).to_vec(),
            BODY.to_owned(),
        ),
        (
            "the secret's text as key",
            keyed_with_text.to_vec(),
            BODY.to_owned(),
        ),
        ("no version", unversioned.to_vec(), BODY.to_owned()),
        (
            "no number",
            standard("c", "now", &KEY).to_vec(),
            BODY.to_owned(),
        ),
        (
            "an empty timestamp",
            standard("c", "", &KEY).to_vec(),
            BODY.to_owned(),
        ),
        (
            "no signature",
            sent("c", now)[..2].to_vec(),
            BODY.to_owned(),
        ),
        ("no headers", Vec::new(), BODY.to_owned()),
        (
            "the other signature",
            vec![(PLATFORM_HEADER, sign(text.as_bytes(), BODY))],
            BODY.to_owned(),
        ),
    ];
    for (case, headers, body) in forged {
        assert_eq!(receiver.send(&headers, &body).await, 401, "{case}");
    }
    assert_eq!(receiver.processed(), 2, "{}", receiver.printed());
}

async fn check_platform_signatures(command: Command) {
    let receiver = ExampleReceiver::start(command, Some(PLATFORM_HEADER));
    let text = BASE64_STANDARD.encode(KEY);
    let signed = |id: &str, key: &[u8]| {
        let signature = sign(key, BODY);
        [("webhook-id", id.to_owned()), (PLATFORM_HEADER, signature)]
    };

    let genuine = signed("a", text.as_bytes());
    for _ in 0..2 {
        assert_eq!(receiver.send(&genuine, BODY).await, 204);
    }
    assert_eq!(receiver.processed(), 1, "{}", receiver.printed());

    let other_body = BODY.replace('1', "2");
    assert_eq!(receiver.send(&genuine, &other_body).await, 401);
    assert_eq!(receiver.send(&signed("b", &KEY), BODY).await, 401);
    assert_eq!(receiver.send(&signed("b", &[8; 32]), BODY).await, 401);
    assert_eq!(
        receiver
            .send(&standard("b", &now().to_string(), &KEY), BODY)
            .await,
        401
    );
    assert_eq!(receiver.send(&[], BODY).await, 401);
    assert_eq!(receiver.processed(), 1, "{}", receiver.printed());
}

/// A receiver without a secret accepts nothing: anyone can sign with an empty key. It exits, except
/// in PHP, whose server runs without it and responds with 500.
async fn check_missing_secret(mut command: Command) {
    command.env("WEBHOOK_SECRET", "");
    if command.get_program() == "php" {
        let receiver = ExampleReceiver::start(command, None);
        let forged = standard("a", &now().to_string(), &[]);
        assert_eq!(receiver.send(&forged, BODY).await, 500);
        assert_eq!(receiver.processed(), 0);
        return;
    }
    command.env("PORT", reserve_addr().port().to_string());
    let exited = output(&mut command);
    let printed = String::from_utf8_lossy(&exited.stderr);
    assert!(!exited.status.success());
    assert!(printed.contains("set WEBHOOK_SECRET"), "{printed}");
}

async fn check(new_command: impl Fn() -> Command) {
    check_standard_signatures(new_command()).await;
    check_platform_signatures(new_command()).await;
    check_missing_secret(new_command()).await;
}

/// An interpreter with a receiver; PHP's gets its arguments later.
fn interpreter(program: &str, receiver: &str) -> Command {
    let mut interpreter = command(Path::new(program));
    if program != "php" {
        interpreter.arg(example(receiver));
    }
    interpreter
}

#[tokio::test(flavor = "multi_thread")]
async fn the_receivers_accept_genuine_notifications_once_and_reject_all_others() {
    for (program, receiver) in [
        ("python3", "receiver.py"),
        ("node", "receiver.mjs"),
        ("php", "receiver.php"),
    ] {
        if find(program, receiver).is_some() {
            check(|| interpreter(program, receiver)).await;
        }
    }
    let receiver = PROGRAMS.delivery.with_file_name("examples/receiver");
    check(|| command(&receiver)).await;
}

/// Go is optional on every machine, because `.ci/run` does not install it.
#[tokio::test(flavor = "multi_thread")]
async fn the_receiver_in_go_accepts_genuine_notifications_once_and_rejects_all_others() {
    if find_optional("go").is_none() {
        let _ = writeln!(
            std::io::stderr(),
            "\n*** SKIPPED: receiver.go: go is not installed"
        );
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("receiver");
    let built = Command::new("go")
        .args(["build", "-o"])
        .args([&program, &example("receiver.go")])
        .env("GOFLAGS", "-mod=mod")
        .env("GOCACHE", directory.path().join("cache"))
        .output()
        .unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    check(|| command(&program)).await;
}
