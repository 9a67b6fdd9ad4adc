//! What is acknowledged has been flushed to disk. `kill -9` keeps the page cache, so kill tests prove
//! nothing about a power loss.

use std::{collections::BTreeSet, path::Path};

use tokio::task::JoinSet;
use uuid::Uuid;

use crate::{
    all_in_one::AllInOne,
    caller::Caller,
    installed, one_processor,
    postgres::Postgres,
    program::{self, PROGRAMS},
};

/// The number of shops that create concurrently, so that commits are grouped.
const SHOPS: usize = 4;

/// The number of deliveries of each shop.
const DELIVERIES: usize = 10;

/// The name of SQLite's write-ahead log in system calls.
const LOG: &str = "delivery.sqlite-wal";

/// The most calls of `futex` for a delivery, in which a thread waits for another or wakes it: a
/// creation that is passed between threads more often takes longer. Counted are 32 to 43: each of the
/// statements of a creation and of its event goes to SQLite's thread and back.
const MAX_FUTEX_CALLS: usize = 64;

/// Traces every system call that writes, flushes or changes the thread, with file names and all
/// written bytes in hexadecimal (pages have 4096 bytes).
const STRACE: [&str; 8] = [
    // Keeps the program a child of the test.
    "--daemonize",
    "--follow-forks",
    "--decode-fds=path",
    "--strings-in-hex=all",
    "--string-limit=8192",
    "--signal=none",
    "--quiet=all",
    "--trace=pwrite64,pwritev,write,writev,sendto,sendmsg,fsync,fdatasync,futex",
];

/// Each delivery's row is written to the log, the log is flushed, and only then is the delivery's id
/// sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_is_flushed_before_it_is_acknowledged() {
    let _processor = one_processor().await;
    let Some(strace) = installed::find("strace", "the flushes of SQLite") else {
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

    let mut shops = JoinSet::new();
    for _ in 0..SHOPS {
        shops.spawn(create(shop.clone()));
    }
    let created: Vec<Uuid> = shops.join_all().await.into_iter().flatten().collect();
    assert!(platform.server.terminate().await.success());

    let trace = std::fs::read_to_string(trace(platform.directory.path())).unwrap();
    let events = events(&trace);
    let (mut first_row, mut last_sent) = (events.len(), 0);
    for id in &created {
        let row = first(&events, 0, |event| match event {
            Event::Logged(bytes) => contains(bytes, id.as_bytes()),
            _ => false,
        });
        let row = row.expect("the row should be in the log");
        let flushed = first(&events, row, |event| matches!(event, Event::Flushed));
        let sent = first(&events, 0, |event| match event {
            Event::Sent(bytes) => contains(bytes, id.to_string().as_bytes()),
            _ => false,
        });
        let sent = sent.expect("the delivery should be acknowledged");
        assert!(
            flushed.is_some_and(|flushed| flushed < sent),
            "{id}: row at {row}, flushed at {flushed:?}, acknowledged at {sent}"
        );
        (first_row, last_sent) = (first_row.min(row), last_sent.max(sent));
    }
    let count = |is_counted: fn(&Event) -> bool| {
        let creating = events[first_row..last_sent].iter();
        creating.filter(|event| is_counted(event)).count()
    };
    let flushes = count(|event| matches!(event, Event::Flushed));
    let futex_calls = count(|event| matches!(event, Event::Futex));
    let creations = created.len();
    crate::report(&format!(
        "strace: {creations} creations acknowledged, each after the flush of its row; {flushes} \
         flushes of the log, {futex_calls} calls of futex"
    ));
    assert!(flushes <= creations);
    let limit = MAX_FUTEX_CALLS * creations;
    assert!(futex_calls <= limit, "{futex_calls} calls of futex");
}

/// Core requires `fsync=on` and `synchronous_commit=on`.
#[tokio::test]
async fn a_postgres_that_acknowledges_before_flushing_is_rejected_at_startup() {
    let _processor = one_processor().await;
    for setting in ["fsync", "synchronous_commit"] {
        let Some(postgres) = Postgres::start_with(&format!("-c {setting}=off")) else {
            return;
        };
        let arguments = ["--listen=127.0.0.1:0", "--database-url", &postgres.url()];
        let output = program::output(program::command(&PROGRAMS.core).args(arguments));

        assert_eq!(output.status.code(), Some(1));
        let errors = String::from_utf8_lossy(&output.stderr);
        let message = errors.lines().last().unwrap();
        assert!(message.starts_with("core-service: "), "{errors}");
        assert!(message.contains(&format!("set {setting} = on")), "{errors}");
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

/// The effect of a system call.
enum Event {
    /// Bytes were written to SQLite's log.
    Logged(Vec<u8>),
    /// A flush of SQLite's log has completed.
    Flushed,
    /// Bytes are about to be sent.
    Sent(Vec<u8>),
    /// A thread waits for another, or wakes it.
    Futex,
}

/// The events of a trace, in order. A call interrupted by another thread's takes two lines:
/// `… <unfinished ...>` at its start and `<... resumed>` at its end.
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
            "futex" => events.push(Event::Futex),
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

fn first(events: &[Event], from: usize, matches: impl Fn(&Event) -> bool) -> Option<usize> {
    let found = events[from..].iter().position(matches);
    found.map(|offset| from + offset)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
