//! The faults that the kill tests inject into a cluster under load.

use std::time::Instant;

use crate::{cluster::Cluster, random::Random, server::Server};

/// How many times [`Fault::Connections`] terminates every connection.
const TERMINATIONS: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Gateway(usize),
    Core(usize),
    /// Leaves leases of a minute.
    Dispatcher(usize),
    /// `kill -9` of the postmaster.
    Postgres,
    /// `pg_ctl stop -m immediate`.
    PostgresImmediately,
    /// Terminates every connection, several times.
    Connections,
}

impl Fault {
    /// Those that a client's requests can notice.
    pub(crate) const OF_REQUESTS: &[Self] = &[
        Self::Gateway(0),
        Self::Gateway(1),
        Self::Core(0),
        Self::Core(1),
        Self::Postgres,
        Self::PostgresImmediately,
        Self::Connections,
    ];
    pub(crate) const OF_NOTIFICATIONS: &[Self] = &[Self::Dispatcher(0), Self::Dispatcher(1)];

    /// Injects the fault and repairs it. `wait_until_served(since)` returns when the platform has
    /// served something that began after `since`: a process is restarted only then, because the
    /// other one of its kind must serve alone.
    pub(crate) async fn inject(
        self,
        cluster: &mut Cluster,
        wait_until_served: impl AsyncFn(Instant),
    ) {
        let injected = Instant::now();
        match self {
            Self::Gateway(number) => {
                kill_and_restart(&mut cluster.gateways[number], wait_until_served).await;
            }
            Self::Core(number) => {
                kill_and_restart(&mut cluster.cores[number], wait_until_served).await;
            }
            Self::Dispatcher(number) => {
                kill_and_restart(&mut cluster.dispatchers[number], wait_until_served).await;
            }
            Self::Postgres => {
                cluster.postgres.kill();
                cluster.postgres.restart();
                wait_until_served(injected).await;
            }
            Self::PostgresImmediately => {
                cluster.postgres.stop_immediately();
                cluster.postgres.restart();
                wait_until_served(injected).await;
            }
            Self::Connections => {
                for _ in 0..TERMINATIONS {
                    cluster.postgres.terminate_backends();
                    wait_until_served(Instant::now()).await;
                }
            }
        }
    }
}

async fn kill_and_restart(server: &mut Server, wait_until_served: impl AsyncFn(Instant)) {
    let killed = Instant::now();
    server.kill();
    wait_until_served(killed).await;
    server.start().await;
}

/// Faults in random order: each occurs once before any occurs again.
pub(crate) struct Faults {
    kinds: Vec<Fault>,
    next: Vec<Fault>,
}

impl Faults {
    /// Of these kinds, which must not be empty.
    pub(crate) fn of(kinds: Vec<Fault>) -> Self {
        Self {
            kinds,
            next: Vec::new(),
        }
    }

    pub(crate) fn next(&mut self, random: &mut Random) -> Fault {
        if self.next.is_empty() {
            self.next = random.shuffle(self.kinds.clone());
        }
        self.next.pop().unwrap()
    }
}
