//! The account of one stream: its dispatcher's credit, and what is held on it. Pure.

use std::collections::HashMap;

use uuid::Uuid;

use domain::{
    fairness::{Places, Room, Standing},
    id::{NotificationId, WebhookId},
};

/// Where a stream stands.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Granted and not used.
    credit: u32,
    /// Of the credit, set aside for claims under way; and of the places for new and for slow ones.
    set_aside: u32,
    set_aside_for_new: u32,
    set_aside_for_slow: u32,
    /// Handed out, or about to be, and not reported.
    held: HashMap<NotificationId, Held>,
    by_webhook: HashMap<WebhookId, u32>,
    of_new: u32,
    of_slow: u32,
    is_closed: bool,
}

/// A notification on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) lease_token: Uuid,
    pub(super) webhook_id: WebhookId,
    pub(super) standing: Standing,
}

impl Account {
    pub(super) fn grant(&mut self, credit: u32) {
        if !self.is_closed {
            self.credit = self.credit.saturating_add(credit);
        }
    }

    /// Takes a place for one notification that is about to be born, if its webhook may have one.
    pub(super) fn take_place(&mut self, id: NotificationId, held: Held) -> bool {
        let places = self.places();
        let of_one = self
            .by_webhook
            .get(&held.webhook_id)
            .copied()
            .unwrap_or_default();
        let of_all = match held.standing {
            Standing::Answering => 0,
            Standing::New => self.of_new,
            Standing::Slow => self.of_slow,
        };
        let is_free = self.credit > self.set_aside
            && of_one < places.of_one(held.standing)
            && of_all < places.of_all(held.standing);
        if is_free {
            self.credit -= 1;
            self.hold(id, held);
        }
        is_free
    }

    /// Gives a place back, as if it had not been taken.
    pub(super) fn give_place_back(&mut self, id: NotificationId, lease_token: Uuid) {
        if self.end(id, lease_token) {
            self.grant(1);
        }
    }

    /// Sets credit aside for a claim, to be ended with [`Self::end_claim`]; none if there is none.
    pub(super) fn begin_claim(&mut self, most: u32) -> Option<Room> {
        let room = self.room(most)?;
        self.set_aside += room.free;
        self.set_aside_for_new += room.free_for_new.min(room.free);
        self.set_aside_for_slow += room.free_for_slow.min(room.free);
        Some(room)
    }

    /// What could be claimed now; none without credit.
    pub(super) fn room(&self, most: u32) -> Option<Room> {
        let free = self.credit.saturating_sub(self.set_aside).min(most);
        if free == 0 {
            return None;
        }
        let places = self.places();
        let of_all = |standing, taken| places.of_all(standing).saturating_sub(taken);
        Some(Room {
            places,
            free,
            free_for_new: of_all(Standing::New, self.of_new + self.set_aside_for_new),
            free_for_slow: of_all(Standing::Slow, self.of_slow + self.set_aside_for_slow),
        })
    }

    /// Ends a claim, with what it has found.
    pub(super) fn end_claim(
        &mut self,
        room: &Room,
        claimed: impl IntoIterator<Item = (NotificationId, Held)>,
    ) {
        let give_back = |set_aside: &mut u32, room_for: u32| {
            *set_aside = set_aside.saturating_sub(room_for.min(room.free));
        };
        give_back(&mut self.set_aside, room.free);
        give_back(&mut self.set_aside_for_new, room.free_for_new);
        give_back(&mut self.set_aside_for_slow, room.free_for_slow);
        for (id, held) in claimed {
            self.credit = self.credit.saturating_sub(1);
            self.hold(id, held);
        }
    }

    /// Ends what was held under a lease; whether it was.
    pub(super) fn end(&mut self, id: NotificationId, lease_token: Uuid) -> bool {
        let is_held = self
            .held
            .get(&id)
            .is_some_and(|held| held.lease_token == lease_token);
        if is_held && let Some(held) = self.held.remove(&id) {
            self.let_go(held);
        }
        is_held
    }

    /// Whether nothing is left of which an outcome could come.
    pub(super) fn holds_nothing(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether at least as much could be handed out as is.
    pub(super) fn is_half_free(&self) -> bool {
        usize::try_from(self.credit).is_ok_and(|credit| credit >= self.held.len())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Ends it all: no credit any more, nor will there be. What was held is given.
    pub(super) fn close(&mut self) -> Vec<(NotificationId, Uuid)> {
        self.is_closed = true;
        self.credit = 0;
        self.by_webhook.clear();
        self.of_new = 0;
        self.of_slow = 0;
        self.held
            .drain()
            .map(|(id, held)| (id, held.lease_token))
            .collect()
    }

    /// All places of the dispatcher at this core, as far as its credit has shown them.
    fn places(&self) -> Places {
        let held = u32::try_from(self.held.len()).unwrap_or(u32::MAX);
        Places(self.credit.saturating_add(held))
    }

    fn hold(&mut self, id: NotificationId, held: Held) {
        *self.by_webhook.entry(held.webhook_id).or_default() += 1;
        match held.standing {
            Standing::Answering => {}
            Standing::New => self.of_new += 1,
            Standing::Slow => self.of_slow += 1,
        }
        if let Some(before) = self.held.insert(id, held) {
            self.let_go(before);
        }
    }

    fn let_go(&mut self, held: Held) {
        if let Some(count) = self.by_webhook.get_mut(&held.webhook_id) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_webhook.remove(&held.webhook_id);
            }
        }
        match held.standing {
            Standing::Answering => {}
            Standing::New => self.of_new = self.of_new.saturating_sub(1),
            Standing::Slow => self.of_slow = self.of_slow.saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Standing::*, *};

    fn account(credit: u32) -> Account {
        let mut account = Account::default();
        account.grant(credit);
        account
    }

    fn held(webhook_id: WebhookId, standing: Standing) -> Held {
        Held {
            lease_token: Uuid::now_v7(),
            webhook_id,
            standing,
        }
    }

    /// Takes as many places as there are, each for another webhook.
    fn fill(account: &mut Account, standing: Standing) -> Vec<(NotificationId, Held)> {
        std::iter::repeat_with(|| (NotificationId::new(), held(WebhookId::new(), standing)))
            .take_while(|(id, held)| account.take_place(*id, *held))
            .collect()
    }

    #[test]
    fn places_are_taken_while_there_is_credit_and_come_back_with_new_credit_alone() {
        let mut account = account(2);
        let taken = fill(&mut account, Answering);
        assert_eq!((taken.len(), account.room(1).is_none()), (2, true));

        let (id, held) = taken[0];
        assert!(account.end(id, held.lease_token));
        assert!(!account.end(id, held.lease_token), "once");
        assert_eq!(fill(&mut account, Answering).len(), 0);
        account.grant(1);
        assert_eq!(fill(&mut account, Answering).len(), 1);
    }

    #[test]
    fn a_place_given_back_is_free_again() {
        let mut account = account(1);
        let taken = fill(&mut account, New);

        account.give_place_back(taken[0].0, taken[0].1.lease_token);
        account.give_place_back(taken[0].0, taken[0].1.lease_token);

        assert_eq!(fill(&mut account, Answering).len(), 1);
    }

    #[test]
    fn one_webhook_and_those_that_do_not_answer_have_no_more_than_their_share() {
        let mut account = account(64);
        let id = WebhookId::new();
        let place = |account: &mut Account, standing| {
            account.take_place(NotificationId::new(), held(id, standing))
        };
        assert!((0..8).all(|_| place(&mut account, Answering)));
        assert!(!place(&mut account, Answering));

        assert_eq!(fill(&mut account, Slow).len(), 16);
        assert_eq!(fill(&mut account, New).len(), 32);
        assert_eq!(fill(&mut account, Answering).len(), 8);
    }

    #[test]
    fn a_claim_and_births_share_the_credit() {
        let mut account = account(8);
        let room = account.begin_claim(6).unwrap();
        assert_eq!((room.free, room.places.0), (6, 8));

        assert_eq!(fill(&mut account, Answering).len(), 2);
        assert!(account.begin_claim(1).is_none());
        let claimed = (NotificationId::new(), held(WebhookId::new(), New));
        account.end_claim(&room, [claimed]);

        assert_eq!(account.begin_claim(100).unwrap().free, 5);
    }

    #[test]
    fn two_claims_at_once_leave_a_part_to_those_that_answer_as_one_does() {
        let mut account = account(64);
        let first = account.begin_claim(20).unwrap();
        assert_eq!((first.free_for_new, first.free_for_slow), (32, 16));

        let second = account.begin_claim(20).unwrap();
        assert_eq!((second.free_for_new, second.free_for_slow), (12, 0));
        account.end_claim(&first, []);
        account.end_claim(&second, []);

        let third = account.begin_claim(64).unwrap();
        assert_eq!(
            (third.free, third.free_for_new, third.free_for_slow),
            (64, 32, 16)
        );
    }

    #[test]
    fn a_closed_account_gives_what_was_held_and_takes_nothing_more() {
        let mut account = account(8);
        let mut taken: Vec<_> = fill(&mut account, Answering)
            .into_iter()
            .map(|(id, held)| (id, held.lease_token))
            .collect();
        taken.sort();

        let mut given = account.close();
        given.sort();

        assert_eq!(given, taken);
        account.grant(8);
        assert!(account.is_closed() && account.room(1).is_none());
        account.give_place_back(taken[0].0, taken[0].1);
        assert_eq!(fill(&mut account, Answering).len(), 0);
    }
}
