//! `delivery health`, as the health check of a container runs it: the exit status and all output.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    process::Command,
};

use crate::{
    all_in_one::AllInOne,
    program::{self, PROGRAMS},
    reserved_addr::reserve_addr,
    server::Server,
};

fn health(arguments: &[&str]) -> Command {
    let mut command = program::command(&PROGRAMS.delivery);
    command.arg("health").args(arguments);
    command
}

/// Asserts the exit status, and the only output: a line on stderr, or none.
#[track_caller]
fn assert_health(command: &mut Command, status: i32, expected: &str) {
    let output = program::output(command);
    assert_eq!(output.stdout, b"", "{command:?}");
    assert_eq!(
        (
            output.status.code(),
            &*String::from_utf8_lossy(&output.stderr)
        ),
        (Some(status), expected),
        "{command:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ready_platform_is_healthy_by_its_data_directory_or_url_and_a_stopped_one_is_not() {
    let mut platform = AllInOne::start().await;
    let base_url = platform.ready()["base_url"].as_str().unwrap().to_owned();
    let data_dir = platform.data_dir.to_str().unwrap().to_owned();
    let by_data_dir = ["--data-dir", &data_dir];

    assert_health(&mut health(&by_data_dir), 0, "");
    assert_health(health(&[]).env("DELIVERY_DATA_DIR", &data_dir), 0, "");
    assert_health(&mut health(&["--url", &base_url]), 0, "");
    assert_health(health(&[]).env("DELIVERY_HEALTH_URL", &base_url), 0, "");

    assert!(platform.server.terminate().await.success());

    assert_health(
        &mut health(&by_data_dir),
        1,
        &format!(
            "no --url is given: cannot read {data_dir}/ready.json: start `delivery`, or set its data directory with --data-dir: No such file or directory (os error 2)\n"
        ),
    );
    let addr = base_url.strip_prefix("http://").unwrap();
    assert_health(
        &mut health(&["--url", &base_url]),
        1,
        &format!("cannot connect to {addr}: Connection refused (os error 111)\n"),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_without_a_core_is_not_ready() {
    let [core, addr, health_addr] = [reserve_addr(), reserve_addr(), reserve_addr()];
    let arguments = vec![
        format!("--core-url=http://{core}"),
        format!("--listen={addr}"),
        format!("--health-listen={health_addr}"),
    ];
    let mut gateway = Server::gateway("gateway", arguments);
    gateway.start().await;

    assert_health(
        &mut health(&[&format!("--url=http://{health_addr}")]),
        1,
        &format!(
            "not ready: no core is ready: the cores' /readyz and logs say why (503 from http://{health_addr}/readyz)\n"
        ),
    );
}

#[test]
fn a_wrong_address_is_unhealthy_with_the_reason() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = other.local_addr().unwrap();
    // Another server: one response of another protocol, one without `/readyz`, and then none.
    let responses = std::thread::spawn(move || {
        for response in [
            "220 mail.example ESMTP\r\n",
            "HTTP/1.1 404 Not Found\r\n\r\n",
        ] {
            let (mut stream, _) = other.accept().unwrap();
            let mut request = [0; 1024];
            let _read = stream.read(&mut request).unwrap();
            stream.write_all(response.as_bytes()).unwrap();
        }
        other
    });
    let url = format!("http://{addr}");

    assert_health(
        &mut health(&["--url", &url]),
        1,
        &format!("{url}/readyz does not respond with HTTP\n"),
    );
    assert_health(
        &mut health(&["--url", &url]),
        1,
        &format!("not ready: no reason in the response (404 from {url}/readyz)\n"),
    );
    // Accepts connections, and does not respond.
    let _silent = responses.join().unwrap();
    assert_health(
        &mut health(&["--url", &url]),
        1,
        &format!("{url}/readyz does not respond within 2s: deadline has elapsed\n"),
    );
    assert_health(
        &mut health(&["--url=ftp://127.0.0.1:1"]),
        1,
        "cannot connect to 127.0.0.1:1: unsupported scheme ftp\n",
    );
    let usage = program::output(&mut health(&["--url=nowhere"]));
    assert_eq!(usage.status.code(), Some(2));
    let printed = String::from_utf8_lossy(&usage.stderr);
    let expected =
        "error: invalid value 'nowhere' for '--url <URL>': relative URL without a base\n";
    assert!(printed.starts_with(expected), "{printed}");
}
