//! The way to the cores: which one is called, what a call carries, when it is tried elsewhere.

mod call;
mod lost;
mod member;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use core_client::{CoreAddr, Cores, Membership};
use tokio::{sync::watch, time::timeout_at};
use tokio_util::task::AbortOnDropHandle;
use tonic::{Response, Status, transport::Channel};

pub(crate) use self::call::{Call, Repeat};
use self::{
    lost::Lost,
    member::{Member, Members},
};
use crate::{error::Error, request::Request};

/// The cores, called in turn.
pub(crate) struct Core {
    members: watch::Receiver<Members>,
    membership: Arc<Membership>,
    next: AtomicUsize,
    _following: AbortOnDropHandle<()>,
}

impl Core {
    /// Connects to none of them yet.
    pub(crate) fn new(cores: Cores) -> Self {
        let membership = Arc::new(Membership::watch(&cores));
        let mut addrs = membership.members.clone();
        let first = join(&cores, &Members::default(), &addrs.borrow_and_update());
        let (tell, members) = watch::channel(first);
        let following = tokio::spawn(async move {
            while addrs.changed().await.is_ok() {
                let joined = join(&cores, &tell.borrow(), &addrs.borrow_and_update());
                tell.send_replace(joined);
            }
        });
        Self {
            members,
            membership,
            next: AtomicUsize::new(0),
            _following: AbortOnDropHandle::new(following),
        }
    }

    /// Calls an rpc that only reads, for the sender of a request.
    pub(crate) async fn read<M, R, F>(
        &self,
        request: &Request,
        message: M,
        rpc: impl Fn(Channel, tonic::Request<M>) -> F,
    ) -> Result<R, Error>
    where
        M: Clone,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        self.call(request.call()?, Repeat::Harmless, message, rpc)
            .await
    }

    /// Calls an rpc on one core, and on another if that one cannot be reached.
    pub(crate) async fn call<M, R, F>(
        &self,
        call: Call,
        repeat: Repeat,
        message: M,
        rpc: impl Fn(Channel, tonic::Request<M>) -> F,
    ) -> Result<R, Error>
    where
        M: Clone,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let response = self.call_in_full(call, repeat, message, rpc).await?;
        Ok(response.into_inner())
    }

    /// As [`Core::call`], with the metadata of the answer.
    pub(crate) async fn call_in_full<M, R, F>(
        &self,
        call: Call,
        repeat: Repeat,
        message: M,
        rpc: impl Fn(Channel, tonic::Request<M>) -> F,
    ) -> Result<Response<R>, Error>
    where
        M: Clone,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let mut outcome = None;
        let mut members = self.in_turn(&call).await.into_iter().peekable();
        while let Some(member) = members.next() {
            // Boxed: every handler holds one of these.
            let answer = Box::pin(rpc(member.channel(), call.request(message.clone())));
            let answer = match repeat {
                Repeat::Harmless if members.peek().is_some() => member.unless_gone(answer).await,
                // It may be done although the core seems gone: only the end of the connection,
                // or the deadline, says that no answer comes.
                Repeat::Harmless | Repeat::Harmful => Some(answer.await),
            };
            match answer {
                None => {}
                Some(Ok(response)) => {
                    if let Some(token) = &call.token {
                        token.was_accepted();
                    }
                    return Ok(response);
                }
                Some(Err(status)) => {
                    let lost = Lost::of(&status);
                    if lost == Lost::BeforeSent {
                        member.pass_over();
                        self.membership.doubt();
                    }
                    outcome = Some(status);
                    match (lost, repeat) {
                        (Lost::BeforeSent, _) | (Lost::Underway, Repeat::Harmless) => {}
                        (Lost::Underway, Repeat::Harmful) | (Lost::No, _) => break,
                    }
                }
            }
        }
        let status =
            outcome.unwrap_or_else(|| Status::unavailable("no core's name has an address"));
        Err(Error::from(status))
    }

    /// All cores, beginning with the one whose turn it is; those that are down last. Waits for
    /// the first, should no address be known yet.
    async fn in_turn(&self, call: &Call) -> Vec<Arc<Member>> {
        let mut members = self.members.clone();
        let known = members.wait_for(|members| !members.is_empty());
        let members = match timeout_at(call.deadline, known).await {
            Ok(Ok(members)) => members.clone(),
            Ok(Err(_)) | Err(_) => return Vec::new(),
        };
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        in_turn(&members, turn, |member| member.is_up())
    }
}

/// The members at these addresses: those that were there before as they were.
fn join(cores: &Cores, before: &Members, addrs: &[CoreAddr]) -> Members {
    let members = addrs.iter().map(|addr| {
        let known = before.iter().find(|member| member.addr() == addr);
        known.map_or_else(|| Member::join(cores, addr), Arc::clone)
    });
    members.collect()
}

/// All, from a turn on, those that are up before the others.
fn in_turn<T: Clone>(members: &[T], turn: usize, is_up: impl Fn(&T) -> bool) -> Vec<T> {
    let mut order = members.to_vec();
    if !order.is_empty() {
        order.rotate_left(turn % members.len());
    }
    // Stable: neighbours stay in turn.
    order.sort_by_cached_key(|member| !is_up(member));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_down_come_last_and_all_others_in_turn() {
        let order = |turn| in_turn(&['a', 'b', 'c', 'd'], turn, |member| *member != 'b');

        assert_eq!(order(0), ['a', 'c', 'd', 'b']);
        assert_eq!(order(1), ['c', 'd', 'a', 'b']);
        assert_eq!(order(2), ['c', 'd', 'a', 'b']);
        assert_eq!(order(usize::MAX), ['d', 'a', 'c', 'b']);
        assert_eq!(in_turn(&[0_u8; 0], 1, |_| true), [0_u8; 0]);
    }
}
