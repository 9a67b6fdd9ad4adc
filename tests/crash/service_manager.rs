//! What each program reports to a service manager such as systemd (`Type=notify`).

use std::{
    os::unix::net::UnixDatagram,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use crate::{
    files::Files,
    program::{self, PROGRAMS},
    reserved_addr::reserve_addr,
};

/// Longer than the start of any program.
const START_TIMEOUT: Duration = Duration::from_mins(1);

#[test]
fn each_program_reports_that_it_serves_and_that_it_shuts_down() {
    let files = Files::new();
    let (database, _) = files.bootstrap();
    let free = "127.0.0.1:0";
    let no_core = format!("--core-url=http://{}", reserve_addr());

    for (program, arguments) in [
        (
            &PROGRAMS.delivery,
            vec![
                format!("--data-dir={}", files.path("data")),
                format!("--rest-listen={free}"),
                format!("--core-listen={free}"),
            ],
        ),
        (
            &PROGRAMS.core,
            [&database[..], &[format!("--listen={free}")]].concat(),
        ),
        (
            &PROGRAMS.gateway,
            vec![format!("--listen={free}"), no_core.clone()],
        ),
        (
            &PROGRAMS.dispatcher,
            vec![no_core.clone(), "--client-key=key".to_owned()],
        ),
    ] {
        let (reported, status) = reports(program, &arguments, &files.directory().join("notify"));
        assert_eq!(reported, ["READY=1", "STOPPING=1"], "{program:?}");
        assert!(status, "{program:?}");
    }
}

/// What a program reports until it has shut down, and whether it exited with success.
fn reports(program: &Path, arguments: &[String], socket: &Path) -> (Vec<String>, bool) {
    let listener = UnixDatagram::bind(socket).unwrap();
    listener.set_read_timeout(Some(START_TIMEOUT)).unwrap();
    let next = || {
        let mut buffer = [0; 64];
        let length = listener.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let mut process = program::command(program)
        .args(arguments)
        .env("NOTIFY_SOCKET", socket)
        .env("DELIVERY_CLIENT_SECRET", "secret")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();

    let ready = next();
    let terminate = format!("kill -TERM {}", process.id());
    let terminated = Command::new("sh").args(["-c", &terminate]).status();
    assert!(terminated.unwrap().success());
    let stopping = next();

    let status = process.wait().unwrap();
    std::fs::remove_file(socket).unwrap();
    (vec![ready, stopping], status.success())
}
