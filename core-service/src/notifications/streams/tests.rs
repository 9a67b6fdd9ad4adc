use std::time::Duration;

use domain::{
    id::{EventId, WebhookId},
    scheduling::ReceiverHealth,
};

use futures_util::FutureExt as _;

use super::*;

/// A stream with credit, and its two ends.
struct OpenStream {
    id: Uuid,
    leased: LeasedReceiver,
    responses: Responses,
    _sent: mpsc::Receiver<Response>,
}

fn open(streams: &Streams, credit: u32) -> OpenStream {
    let (responses, sent) = mpsc::channel(1);
    let (id, leased) = streams.open(&responses);
    streams.grant(id, credit);
    OpenStream {
        id,
        leased,
        responses,
        _sent: sent,
    }
}

fn notification() -> NewNotification {
    NewNotification {
        leased: storage::fixture::claimed(WebhookId::new(), ReceiverHealth::Healthy),
        event_id: EventId::new(),
        may_be_pre_leased: true,
        is_pre_leased: false,
    }
}

#[test]
fn a_committed_notification_is_sent_under_its_pre_lease() {
    let (streams, mut unsent_leases) = Streams::new();
    let mut stream = open(&streams, 1);
    let notification = notification();

    let reservation = streams.reserve(&notification).unwrap();
    let lease = reservation.unsent.as_ref().unwrap().claimed.lease;
    assert!(
        streams.reserve(&self::notification()).is_none(),
        "no credit"
    );
    reservation.send();

    assert_eq!(lease, notification.leased.lease);
    let sent = stream.leased.try_recv().unwrap();
    assert_eq!(sent[0].claimed.lease, lease);
    assert!(unsent_leases.try_recv().is_err());
}

#[test]
fn an_unsent_reservation_releases_its_capacity_and_its_lease() {
    let (streams, mut unsent_leases) = Streams::new();
    let mut stream = open(&streams, 1);

    for closes in [false, true] {
        let notification = notification();
        let reservation = streams.reserve(&notification).unwrap();
        let lease = reservation.unsent.as_ref().unwrap().claimed.lease;
        if closes {
            streams.flow_control().close(stream.id);
            stream.leased.close();
            reservation.send();
        } else {
            drop(reservation);
        }
        assert_eq!(unsent_leases.try_recv().unwrap(), lease);
    }

    assert!(stream.leased.try_recv().is_err());
    assert!(
        streams.reserve(&notification()).is_none(),
        "no stream is open"
    );
}

/// Its pre-lease could expire during the attempt.
#[test]
fn a_reservation_older_than_a_sixth_of_the_lease_is_released_instead_of_sent() {
    let (streams, mut unsent_leases) = Streams::new();
    let mut stream = open(&streams, 1);

    for (age, is_sent) in [(11, false), (5, true)] {
        let notification = notification();
        let mut reservation = streams.reserve(&notification).unwrap();
        let lease = reservation.unsent.as_ref().unwrap().claimed.lease;
        let leased_at = Instant::now().checked_sub(Duration::from_secs(age));
        reservation.unsent.as_mut().unwrap().leased_at = leased_at.unwrap();
        reservation.send();

        let sent = stream.leased.try_recv().ok();
        let sent = sent.map(|sent| (sent[0].claimed.lease, sent[0].leased_at));
        assert_eq!(sent, leased_at.filter(|_| is_sent).map(|at| (lease, at)));
        let released = unsent_leases.try_recv().ok();
        assert_eq!(released, (!is_sent).then_some(lease));
        let free = streams.flow_control().claim_budget();
        assert_eq!(free.map(|budget| budget.free), (!is_sent).then_some(1));
    }
}

#[test]
fn nothing_is_pre_leased_to_a_stream_that_is_not_read_or_if_it_is_to_be_claimed() {
    let (streams, _unsent_leases) = Streams::new();
    let stream = open(&streams, 8);
    let to_be_claimed = NewNotification {
        may_be_pre_leased: false,
        ..notification()
    };
    assert!(streams.reserve(&to_be_claimed).is_none());
    assert!(streams.reserve(&notification()).is_some());

    let response = proto::ReceiveResponse::default();
    stream.responses.try_send(Ok(response)).unwrap();

    assert!(streams.reserve(&notification()).is_none());
}

#[test]
fn an_outcome_wakes_the_claims_after_it_has_freed_its_capacity() {
    let (streams, _unsent_leases) = Streams::new();
    let _stream = open(&streams, 8);
    let one = notification();
    let reservation = streams.reserve(&one).unwrap();
    let lease = reservation.unsent.as_ref().unwrap().claimed.lease;
    reservation.send();
    assert!(streams.reserve(&one).is_none(), "one per webhook");
    // The grant has woken them too.
    assert!(streams.capacity_freed.notified().now_or_never().is_some());
    assert!(streams.capacity_freed.notified().now_or_never().is_none());

    streams.complete([(lease, true)]);

    assert!(streams.capacity_freed.notified().now_or_never().is_some());
    assert!(streams.reserve(&one).is_some());
}
