//! A `psql` session on the platform's database.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tokio::sync::watch;

/// Far longer than any statement of a test waits.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Killed when it is dropped.
pub(crate) struct PsqlSession {
    psql: Child,
    /// Every line it has printed.
    printed: watch::Receiver<Vec<String>>,
}

impl PsqlSession {
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
        let found = printed.wait_for(|lines| lines.iter().any(|printed| printed == line));
        let in_time = tokio::time::timeout(TIMEOUT, found).await;
        let found = in_time.unwrap_or_else(|_| panic!("{line:?} was not printed"));
        assert!(found.is_ok(), "psql exited without {line:?}");
    }
}

impl Drop for PsqlSession {
    fn drop(&mut self) {
        // Both fail if psql has already exited.
        let _ = self.psql.kill();
        let _ = self.psql.wait();
    }
}
