//! That "acknowledged" means "flushed": `kill -9` leaves the page cache, so it proves nothing
//! about a power cut.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use tokio::task::JoinSet;
use uuid::Uuid;

use crate::{
    ONE_AT_A_TIME,
    all_in_one::AllInOne,
    caller::Caller,
    postgres::Postgres,
    program::{self, PROGRAMS},
};

/// How many shops create at once, so that they share commits.
const SHOPS: usize = 4;

/// How many deliveries each creates.
const DELIVERIES: usize = 10;

/// The write-ahead log of SQLite, as the system calls name it.
const LOG: &str = "delivery.sqlite-wal";

/// Every system call that writes to a file or a socket, or flushes, with all that is written
/// (pages have 4096 bytes) in hexadecimal, and with the names of files.
const STRACE: [&str; 8] = [
    // The program stays our child.
    "--daemonize",
    "--follow-forks",
    "--decode-fds=path",
    "--strings-in-hex=all",
    "--string-limit=8192",
    "--signal=none",
    "--quiet=all",
    "--trace=pwrite64,pwritev,write,writev,sendto,sendmsg,fsync,fdatasync",
];

/// Each delivery's row is written to the log, then the log is flushed, and only then the
/// delivery's id is sent to anyone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_is_flushed_before_it_is_acknowledged() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(strace) = find_in_path("strace") else {
        crate::say("strace is not installed: the proof that SQLite flushes is SKIPPED");
        return;
    };
    let trace = |directory: &Path| directory.join("trace");
    let mut platform = AllInOne::start_under(&strace, |directory| {
        let output = format!("--output={}", trace(directory).to_str().unwrap());
        let delivery = PROGRAMS.delivery.to_str().unwrap().to_owned();
        let options = STRACE.map(str::to_owned).into_iter();
        options.chain([output, delivery]).collect()
    })
    .await;
    let shop = platform.shop().await;

    let mut creating = JoinSet::new();
    for _ in 0..SHOPS {
        creating.spawn(create(shop.clone()));
    }
    let created: Vec<Uuid> = creating.join_all().await.into_iter().flatten().collect();
    assert!(platform.server.terminate().await.success());

    let trace = std::fs::read_to_string(trace(platform.directory.path())).unwrap();
    let events = events(&trace);
    for id in &created {
        let row = first(&events, 0, |event| match event {
            Event::Logged(bytes) => contains(bytes, id.as_bytes()),
            Event::Flushed | Event::Sent(_) => false,
        });
        let row = row.expect("its row is in the log");
        let flushed = first(&events, row, |event| matches!(event, Event::Flushed));
        let sent = first(&events, 0, |event| match event {
            Event::Sent(bytes) => contains(bytes, id.to_string().as_bytes()),
            Event::Flushed | Event::Logged(_) => false,
        });
        let sent = sent.expect("it was acknowledged");
        assert!(
            flushed.is_some_and(|flushed| flushed < sent),
            "{id}: row at {row}, flushed at {flushed:?}, acknowledged at {sent}"
        );
    }
    let flushes = events
        .iter()
        .filter(|event| matches!(event, Event::Flushed));
    crate::say(&format!(
        "strace: {} creates acknowledged, each after the flush of its row; {} flushes of the log in all",
        created.len(),
        flushes.count()
    ));
}

/// "PostgreSQL with `synchronous_commit=on`; start-up refuses `fsync=off`."
#[tokio::test]
async fn a_postgres_that_answers_before_it_has_flushed_is_refused_by_a_sentence() {
    let _alone = ONE_AT_A_TIME.lock().await;
    for setting in ["fsync", "synchronous_commit"] {
        let Some(postgres) = Postgres::start_with(&format!("-c {setting}=off")) else {
            return;
        };
        let output = program::command(&PROGRAMS.core)
            .args(["--listen=127.0.0.1:0", "--database-url", &postgres.url()])
            .output()
            .unwrap();

        assert_eq!(output.status.code(), Some(1));
        let errors = String::from_utf8_lossy(&output.stderr);
        let sentence = errors.lines().last().unwrap();
        assert!(sentence.starts_with("core-service: "), "{errors}");
        assert!(
            sentence.contains(&format!("set {setting} = on")),
            "{errors}"
        );
    }
}

async fn create(shop: Caller) -> Vec<Uuid> {
    let mut created = Vec::new();
    for _ in 0..DELIVERIES {
        let delivery = shop.create_delivery().await.unwrap();
        created.push(delivery["id"].as_str().unwrap().parse().unwrap());
    }
    created
}

/// What a system call did, at the moment that counts.
enum Event {
    /// Bytes were written to SQLite's log.
    Logged(Vec<u8>),
    /// A flush of SQLite's log has ended.
    Flushed,
    /// Bytes were about to be sent.
    Sent(Vec<u8>),
}

/// What happened, in its order. A call that another thread's overtakes is two lines:
/// `… <unfinished ...>` where it began and `<... resumed>` where it ended.
fn events(trace: &str) -> Vec<Event> {
    let log = LOG
        .bytes()
        .fold(String::new(), |hex, byte| hex + &format!("\\x{byte:02x}"));
    let mut flushing = BTreeSet::new();
    let mut events = Vec::new();
    for line in trace.lines() {
        let (thread, call) = line.split_once(' ').unwrap();
        let call = call.trim_start();
        let name = call.split('(').next().unwrap();
        let is_unfinished = call.ends_with("<unfinished ...>");
        let is_log = call.contains(LOG) || call.contains(&log);
        match name {
            "fsync" | "fdatasync" if is_log && is_unfinished => {
                flushing.insert(thread);
            }
            "fsync" | "fdatasync" if is_log && call.ends_with("= 0") => events.push(Event::Flushed),
            "pwrite64" | "pwritev" if is_log => events.push(Event::Logged(written(call))),
            "write" | "writev" | "sendto" | "sendmsg" => events.push(Event::Sent(written(call))),
            _ if call.contains("sync resumed>")
                && flushing.remove(thread)
                && call.ends_with("= 0") =>
            {
                events.push(Event::Flushed);
            }
            _ => {}
        }
    }
    events
}

/// The bytes of every string of a call: in hexadecimal, `\x` before each.
fn written(call: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in call.split('"').skip(1).step_by(2) {
        let digits = text.split("\\x").skip(1);
        bytes.extend(digits.map(|digits| u8::from_str_radix(digits, 16).unwrap()));
    }
    bytes
}

fn first(events: &[Event], from: usize, is_it: impl Fn(&Event) -> bool) -> Option<usize> {
    let found = events[from..].iter().position(is_it);
    found.map(|after| from + after)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn find_in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}
