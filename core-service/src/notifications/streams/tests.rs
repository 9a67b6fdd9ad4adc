use std::time::Duration;

use super::*;
use domain::{
    event::EventName,
    id::{DeliveryId, EventId, StoreId, WebhookId},
};

use storage::webhooks::Target;

/// A stream with credit, and its two ends.
struct OpenStream {
    stream: Arc<DispatcherStream>,
    pre_leased: mpsc::UnboundedReceiver<PreLeased>,
    responses: Responses,
    _sent: mpsc::Receiver<Response>,
}

fn open(streams: &Streams, credit: u32) -> OpenStream {
    let (responses, sent) = mpsc::channel(1);
    let (stream, pre_leased) = streams.open(&responses);
    stream.flow_control().grant(credit);
    OpenStream {
        stream,
        pre_leased,
        responses,
        _sent: sent,
    }
}

fn notification() -> NewNotification {
    NewNotification {
        id: NotificationId::new(),
        event_id: EventId::new(),
        event: EventName::DeliveryCompleted,
        store_id: StoreId::new(),
        delivery_id: DeliveryId::new(),
        may_be_pre_leased: true,
        traceparent: None,
        target: Target::example(WebhookId::new()),
    }
}

#[test]
fn a_committed_notification_is_sent_under_its_pre_lease() {
    let (streams, mut unsent_leases) = Streams::new();
    let mut stream = open(&streams, 1);
    let notification = notification();

    let reservation = streams.reserve(&notification).unwrap();
    let lease = (notification.id, reservation.lease_token);
    assert!(
        streams.reserve(&self::notification()).is_none(),
        "no credit"
    );
    reservation.send();

    assert_eq!(stream.pre_leased.try_recv().unwrap().lease(), lease);
    assert!(unsent_leases.try_recv().is_err());
}

#[test]
fn an_unsent_reservation_releases_its_capacity_and_its_lease() {
    let (streams, mut unsent_leases) = Streams::new();
    let mut stream = open(&streams, 1);

    for closes in [false, true] {
        let notification = notification();
        let reservation = streams.reserve(&notification).unwrap();
        let lease = (notification.id, reservation.lease_token);
        if closes {
            streams.close(&stream.stream);
            reservation.send();
        } else {
            drop(reservation);
        }
        assert_eq!(unsent_leases.try_recv().unwrap(), lease);
    }

    assert!(stream.pre_leased.try_recv().is_err());
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
        let lease = (notification.id, reservation.lease_token);
        let leased_at = Instant::now().checked_sub(Duration::from_secs(age));
        reservation.unsent.as_mut().unwrap().leased_at = leased_at.unwrap();
        reservation.send();

        let sent = stream.pre_leased.try_recv().ok();
        let sent = sent.map(|sent| (sent.lease(), sent.leased_at));
        assert_eq!(sent, leased_at.filter(|_| is_sent).map(|at| (lease, at)));
        let released = unsent_leases.try_recv().ok();
        assert_eq!(released, (!is_sent).then_some(lease));
        let free = stream.stream.flow_control().claim_budget(8);
        assert_eq!(free.map(|budget| budget.free), (!is_sent).then_some(1));
    }
}

#[test]
fn a_poll_without_capacity_leaves_notifications_unclaimed() {
    let (streams, _unsent_leases) = Streams::new();
    let stream = open(&streams, 1).stream;
    stream.clear_unclaimed();
    assert!(!stream.has_unclaimed());

    stream.record_no_capacity();

    assert!(stream.has_unclaimed());
}

#[test]
fn a_poll_that_finds_nothing_due_keeps_what_a_concurrent_claim_recorded() {
    let (streams, _unsent_leases) = Streams::new();
    let stream = open(&streams, 1).stream;
    stream.record_expects_more_due(true);

    // The poll begins.
    stream.clear_unclaimed();
    // Meanwhile, a claim together with outcomes finds notifications.
    stream.record_expects_more_due(true);
    // The poll ends.
    stream.record_nothing_due();
    assert!(stream.expects_more_due() && stream.has_unclaimed());

    stream.clear_unclaimed();
    stream.record_nothing_due();
    assert!(!stream.expects_more_due() && !stream.has_unclaimed());
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
fn reservations_alternate_between_streams() {
    let (streams, _unsent_leases) = Streams::new();
    let mut both = [open(&streams, 8), open(&streams, 8)];

    for _ in 0..4 {
        streams.reserve(&notification()).unwrap().send();
    }

    for stream in &mut both {
        assert_eq!(stream.pre_leased.len(), 2);
        stream.pre_leased.close();
    }
}

#[test]
fn an_outcome_frees_its_stream_wherever_it_is_reported() {
    let (streams, _unsent_leases) = Streams::new();
    let both = [open(&streams, 1), open(&streams, 1)];
    let leases = both.each_ref().map(|_| {
        let notification = notification();
        let reservation = streams.reserve(&notification).unwrap();
        let lease = (notification.id, reservation.lease_token);
        reservation.send();
        lease
    });

    let completed = streams.complete(&leases[..1]).unwrap();

    assert!(Arc::ptr_eq(&completed, &both[0].stream));
    assert!(streams.complete(&leases[..1]).is_none());
    streams.close(&both[1].stream);
    assert!(streams.complete(&leases).is_none());
}
