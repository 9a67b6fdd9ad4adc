//! One of the cores: the way to it, and whether it is there.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use core_client::{CoreAddr, Cores};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tonic::transport::Channel;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::lost::Lost;

/// How often a core is asked whether it serves.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// How long it may take to say so. With the interval before it: below the two seconds after which
/// nobody is kept waiting by a core that is gone, even where packets just vanish.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// All of them, in no order that means anything.
pub(super) type Members = Vec<Arc<Member>>;

/// A core at one address.
pub(super) struct Member {
    addr: CoreAddr,
    channel: Channel,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Up,
    /// It finishes what it has, and takes nothing new.
    Ending,
    Gone,
}

impl Member {
    /// Takes it for up until more is known, and sees to that from now on.
    pub(super) fn join(cores: &Cores, addr: &CoreAddr) -> Arc<Self> {
        let member = Arc::new(Self {
            addr: addr.clone(),
            channel: cores.channel(addr),
            state: watch::Sender::new(State::Up),
        });
        tokio::spawn(check_again_and_again(Arc::downgrade(&member)));
        member
    }

    pub(super) fn addr(&self) -> &CoreAddr {
        &self.addr
    }

    pub(super) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    pub(super) fn is_up(&self) -> bool {
        *self.state.borrow() == State::Up
    }

    /// Passes it over while there are others, until it says again that it serves.
    pub(super) fn pass_over(&self) {
        self.become_(State::Gone);
    }

    /// The answer, unless the member is found to be gone before it is there. One that was gone
    /// before is given the time it takes.
    pub(super) async fn unless_gone<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let mut state = self.state.subscribe();
        let gone = async {
            if *state.borrow_and_update() == State::Gone {
                std::future::pending::<()>().await;
            }
            let _ = state.wait_for(|state| *state == State::Gone).await;
        };
        tokio::select! {
            biased;
            answer = answer => Some(answer),
            () = gone => None,
        }
    }

    async fn check(&self) {
        let mut health = HealthClient::new(self.channel());
        let answer = timeout(CHECK_TIMEOUT, health.check(HealthCheckRequest::default())).await;
        self.become_(match answer {
            Ok(Ok(answer)) => match answer.get_ref().status() {
                ServingStatus::NotServing => State::Ending,
                _ => State::Up,
            },
            // It is there, and knows nothing of health.
            Ok(Err(status)) if Lost::of(&status) == Lost::No => State::Up,
            Ok(Err(_)) | Err(_) => State::Gone,
        });
    }

    fn become_(&self, state: State) {
        let changed = self.state.send_if_modified(|before| {
            let changed = *before != state;
            *before = state;
            changed
        });
        let core = &self.addr;
        match state {
            _ if !changed => {}
            State::Up => tracing::info!(%core, "core is there"),
            State::Ending => tracing::info!(%core, "core is ending"),
            State::Gone => {
                tracing::warn!(%core, "core cannot be reached; looking for it again and again");
            }
        }
    }
}

/// For as long as anybody needs it.
async fn check_again_and_again(member: Weak<Member>) {
    while let Some(member) = member.upgrade() {
        member.check().await;
        drop(member);
        sleep(CHECK_INTERVAL).await;
    }
}
