//! Checks of geocoders, router, public URL, certificates and egress policy.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
};

use jiff::{SignedDuration, tz::TimeZone};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use super::{Report, as_strs};
use crate::harness::{
    UpstreamServer,
    all_in_one::{AllInOne, command},
};

#[tokio::test]
async fn geocoders_and_a_router_are_called_and_their_keys_are_not_printed() {
    let data_dir = tempfile::tempdir().unwrap();
    let directory = data_dir.path().to_owned();
    let osrm = UpstreamServer::start_router(1000.0, 60.0).await;
    let served = format!("--osrm-url={}", osrm.url);
    let photon = "photon=http://127.0.0.1:1/?key=SECRET";
    let run = move |flags: &[&str]| {
        let mut command = command();
        command
            .args(["doctor", "--json"])
            .args(flags)
            .arg("--data-dir")
            .arg(&directory)
            .env("DELIVERY_GEOCODER", photon);
        let output = command.output().unwrap();
        assert!(!String::from_utf8_lossy(&output.stdout).contains("SECRET"));
        Report::read(&output)
    };

    let unreachable = "--osrm-url=http://127.0.0.1:1";
    // The fake server needs this runtime meanwhile.
    let [estimated, refused, served] = tokio::task::spawn_blocking(move || {
        [
            run(&[unreachable]),
            run(&[unreachable, "--osrm-fallback=refuse"]),
            run(&[&served]),
        ]
    })
    .await
    .unwrap();

    let photon = "photon (127.0.0.1): no response";
    estimated.assert("geocoder photon", "failure", photon);
    estimated.assert(
        "router",
        "warning",
        "the router is unavailable: no response",
    );
    refused.assert(
        "router",
        "failure",
        "the router is unavailable: no response",
    );
    served.assert("router", "ok", "127.0.0.1 responds");
    assert_eq!(osrm.requests().len(), 1);
}

#[test]
fn a_gazetteer_that_does_not_exist_yet_is_a_warning_and_a_damaged_one_a_failure() {
    let data_dir = tempfile::tempdir().unwrap();
    let file = data_dir.path().join("nowhere.sqlite");

    let flag = format!("--gazetteer-file={}", file.display());
    let report = Report::of(data_dir.path(), &[&flag]);
    report.assert("geocoder gazetteer", "warning", "does not exist yet");

    fs::write(&file, "not an index").unwrap();
    let report = Report::of(data_dir.path(), &[&flag]);
    report.assert("geocoder gazetteer", "failure", "no usable address index");
    let none = Report::of(data_dir.path(), &["--geocoder=none"]);
    none.assert("geocoder", "ok", "every address needs a point");
}

/// Writes a certificate of 127.0.0.1 that expires `days` days from now, and its key; returns their
/// paths.
fn write_certificate(directory: &Path, days: i64) -> [String; 2] {
    let end = delivery::Clock::system().now() + SignedDuration::from_hours(days * 24);
    let end = end.to_zoned(TimeZone::UTC);
    let (month, day) = (end.month(), end.day());
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    let unsigned = |number: i8| u8::try_from(number).unwrap();
    params.not_after = date_time_ymd(end.year().into(), unsigned(month), unsigned(day));
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let write = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let path = directory.join(format!("{days}.{name}"));
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    [
        write("pem", &certificate.pem()),
        write("key", &key.serialize_pem()),
    ]
}

#[test]
fn an_expired_or_untrusted_certificate_is_a_failure_and_one_that_ends_soon_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    for (days, is_trusted, of_url, of_file) in [
        (90, true, ("ok", "is valid until"), "ok"),
        (7, true, ("warning", "is valid until"), "warning"),
        (-7, true, ("failure", "certificate expired"), "failure"),
        (91, false, ("failure", "UnknownIssuer"), "ok"),
    ] {
        let [certificate, key] = write_certificate(directory, days);
        let data_dir = directory.join(format!("{days}"));
        let flags = [
            format!("--tls-certificate={certificate}"),
            format!("--tls-key={key}"),
        ];
        let running = AllInOne::start(&data_dir, &as_strs(&flags));
        let mut command = command();
        command.args(["doctor", "--json"]).args(&flags);
        command.arg("--data-dir").arg(&data_dir);
        command.args(["--public-url", running.text("/base_url")]);
        if is_trusted {
            command.env("SSL_CERT_FILE", &certificate);
        }

        let report = Report::read(&command.output().unwrap());

        report.assert("public URL", of_url.0, of_url.1);
        report.assert("REST certificate", of_file, &certificate);
        report.assert("platform", "ok", "is ready");
        assert!(running.stop("-TERM").success());
    }
    let [certificate, _] = write_certificate(directory, 92);
    let [_, other_key] = write_certificate(directory, 93);
    let flags = [
        format!("--grpc-tls-certificate={certificate}"),
        format!("--grpc-tls-key={other_key}"),
    ];
    let report = Report::of(&directory.join("90"), &as_strs(&flags));
    report.assert("gRPC certificate", "failure", "does not match certificate");
}

#[test]
fn a_public_url_that_does_not_lead_to_the_platform_is_a_failure() {
    let data_dir = tempfile::tempdir().unwrap();
    let running = AllInOne::start(data_dir.path(), &[]);
    let public_url = format!("--public-url={}", running.text("/base_url"));
    let report = Report::of(data_dir.path(), &[&public_url]);
    report.assert("public URL", "ok", "responds");
    let report = Report::of(data_dir.path(), &["--rest-listen=0.0.0.0:8080"]);
    report.assert("public URL", "warning", "0.0.0.0:8080 is not loopback");

    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = other.local_addr().unwrap();
    let respond = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let mut request = [0; 1024];
        let length = stream.read(&mut request).unwrap();
        let response = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(response.as_bytes()).unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let flag = format!("--public-url=http://{addr}/shop/");
    let report = Report::of(data_dir.path(), &[&flag]);
    let not_found = format!("http://{addr}/shop/api responds with 404");
    report.assert("public URL", "failure", &not_found);
    assert!(
        respond
            .join()
            .unwrap()
            .starts_with("GET /shop/api HTTP/1.1\r\n")
    );

    let report = Report::of(data_dir.path(), &[&flag]);
    let refused = format!("cannot connect to {addr}: Connection refused");
    report.assert("public URL", "failure", &refused);

    assert!(running.stop("-TERM").success());
    let report = Report::of(data_dir.path(), &[&flag]);
    report.assert(
        "public URL",
        "skipped",
        "nothing runs in the data directory",
    );
}

#[test]
fn an_egress_policy_that_lets_shops_reach_this_machine_is_a_warning() {
    let data_dir = tempfile::tempdir().unwrap();
    for (flags, status, found) in [
        (&[][..], "ok", "https only"),
        (&["--allow-network=10.0.0.0/8"], "ok", "https only"),
        (&["--allow-http"], "warning", "http:// URLs"),
        (&["--allow-network=127.0.0.0/8"], "warning", "this machine"),
        (&["--allow-network=::1"], "warning", "this machine"),
        (
            &["--allow-network=169.254.0.0/16"],
            "warning",
            "the metadata service of clouds (169.254.169.254)",
        ),
        (
            &[
                "--allow-network=0.0.0.0/0",
                "--deny-network=127.0.0.0/8",
                "--deny-network=169.254.0.0/16",
            ],
            "ok",
            "https only",
        ),
    ] {
        let flags = [&["--no-demo"], flags].concat();
        let report = Report::of(data_dir.path(), &flags);
        report.assert("egress policy", status, found);
    }
}
