//! Somebody at PostgreSQL's prompt, beside the platform.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tokio::sync::watch;

/// Far beyond what any statement of a test waits for.
const DEADLINE: Duration = Duration::from_secs(40);

/// Ended when it is dropped.
pub(crate) struct Session {
    psql: Child,
    /// Every line it printed.
    printed: watch::Receiver<Vec<String>>,
}

impl Session {
    pub(super) fn start(psql: &mut Command, statements: &str) -> Self {
        let mut psql = psql
            .args(["--tuples-only", "--no-align"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = psql.stdin.take().unwrap();
        stdin.write_all(statements.as_bytes()).unwrap();
        let stdout = BufReader::new(psql.stdout.take().unwrap());
        let lines = watch::Sender::new(Vec::new());
        let printed = lines.subscribe();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                lines.send_modify(|lines| lines.push(line));
            }
        });
        Self { psql, printed }
    }

    /// Waits until it has printed a line.
    pub(crate) async fn wait_for(&self, line: &str) {
        let mut printed = self.printed.clone();
        let is_there = printed.wait_for(|lines| lines.iter().any(|printed| printed == line));
        let in_time = tokio::time::timeout(DEADLINE, is_there).await;
        let is_there = in_time.unwrap_or_else(|_| panic!("{line:?} was not printed"));
        assert!(is_there.is_ok(), "psql ended without {line:?}");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Both fail once it has ended, which is well.
        let _ = self.psql.kill();
        let _ = self.psql.wait();
    }
}
