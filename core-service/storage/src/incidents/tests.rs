//! Incidents, written and read on both databases.

use std::sync::Arc;

use domain::{
    device_clock::DeviceTimes,
    lifecycle::{Command, Reschedule},
    task::{Actor, TaskKind, TimeWindow},
    task_event::{Remarks, TaskReport},
};
use jiff::SignedDuration;

use super::*;
use crate::{Storage, deliveries, entity::store, fixture, pages::Cursor, personal_data};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn at(minutes: i64) -> Timestamp {
    NOW + SignedDuration::from_mins(minutes)
}

fn report(notes: Option<&str>) -> TaskReport {
    TaskReport {
        by: Actor::Courier,
        api_client_id: ApiClientId::new(),
        courier_id: None,
        times: DeviceTimes::default(),
        remarks: Remarks {
            notes: notes.map(str::to_owned),
            contact_name: None,
        },
    }
}

fn content(description: &str) -> IncidentContent {
    IncidentContent {
        description: Some(description.to_owned()),
        reason: Some("DOG_BITES".parse().unwrap()),
        metadata: [("shelf".to_owned(), "7".to_owned())].into(),
    }
}

async fn insert_delivery(storage: &Storage) -> Delivery {
    let delivery = fixture::delivery(StoreId::new(), NOW);
    let insert = storage.insert_delivery(fixture::new_delivery(delivery.clone()));
    assert!(insert.await.unwrap());
    delivery
}

/// Reports an incident of the pickup.
async fn open(
    storage: &Arc<Storage>,
    delivery: &mut Delivery,
    content: IncidentContent,
    now: Timestamp,
) -> Incident {
    let reported = delivery.report_incident(TaskKind::Pickup, content, &report(None), now);
    let (incident, event) = reported.unwrap();
    let (changed, opened) = (delivery.clone(), incident.clone());
    let write = storage.write(move |transaction| async move {
        insert(&transaction, &changed, &opened, &event).await
    });
    write.await.unwrap();
    incident
}

async fn close_one(
    storage: &Arc<Storage>,
    delivery: &mut Delivery,
    incident: &Incident,
    now: Timestamp,
) -> Incident {
    let mut incident = incident.clone();
    let event = delivery.close_incident(&mut incident, &report(Some("calmed Zoé")), now);
    let event = event.unwrap();
    let (changed, closed) = (delivery.clone(), incident.clone());
    let write = storage.write(move |transaction| async move {
        close(&transaction, &changed, &closed, &event).await
    });
    write.await.unwrap();
    incident
}

/// All pages of a list.
async fn all(storage: &Storage, filter: Filter, size: u32) -> Vec<Incident> {
    let (mut found, mut start) = (Vec::new(), Start::Newest);
    loop {
        let page = list(storage.reader(), filter, start, size).await;
        let (incidents, has_more) = page.unwrap();
        let last = incidents.last().map(|last| Cursor {
            created_at: last.created_at,
            id: last.id.0,
        });
        found.extend(incidents);
        match last.filter(|_| has_more) {
            Some(last) => start = Start::OlderThan(last),
            None => return found,
        }
    }
}

fn of(delivery: &Delivery, open_only: bool) -> Filter {
    Filter {
        task: Some((delivery.store_id, delivery.pickup.id)),
        open_only,
    }
}

async fn stored(storage: &Storage, delivery: &Delivery) -> Delivery {
    let found = deliveries::find(storage.reader(), delivery.store_id, delivery.id).await;
    found.unwrap().unwrap()
}

#[tokio::test]
async fn incidents_are_listed_newest_first_of_all_stores_or_of_a_task() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let mut first = insert_delivery(&storage).await;
        let mut second = insert_delivery(&storage).await;
        let oldest = open(&storage, &mut first, content("a"), at(1)).await;
        let other = open(&storage, &mut second, content("a"), at(2)).await;
        let newest = open(&storage, &mut first, content("b"), at(3)).await;
        assert_eq!(stored(&storage, &first).await.pickup.open_incidents, 2);

        let oldest = close_one(&storage, &mut first, &oldest, at(4)).await;

        assert_eq!(stored(&storage, &first).await, first);
        let find = async |id| find(storage.reader(), id).await.unwrap();
        assert_eq!(find(oldest.id).await, Some(oldest.clone()));
        assert_eq!(find(IncidentId::new()).await, None);
        for size in [1, 2, 9] {
            let everything = Filter::default();
            let expected = [newest.clone(), other.clone(), oldest.clone()];
            assert_eq!(all(&storage, everything, size).await, expected);
            let open_only = Filter {
                open_only: true,
                ..everything
            };
            assert_eq!(all(&storage, open_only, size).await, expected[..2]);
            let expected = [newest.clone(), oldest.clone()];
            assert_eq!(all(&storage, of(&first, false), size).await, expected);
            assert_eq!(all(&storage, of(&first, true), size).await, expected[..1]);
        }
        let history =
            crate::task_events::list(storage.reader(), first.store_id, first.pickup.id, NOW, 9);
        let (history, _) = history.await.unwrap();
        let names = history.iter().map(|event| event.transition.name().as_str());
        let expected = ["incident-reported", "incident-reported", "incident-closed"];
        assert_eq!(names.collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn only_the_same_report_of_the_same_client_is_a_repetition_while_it_is_open() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let mut delivery = insert_delivery(&storage).await;
        let without_texts = IncidentContent {
            description: None,
            reason: None,
            metadata: BTreeMap::new(),
        };
        let first = open(&storage, &mut delivery, content("a"), at(1)).await;
        let bare = open(&storage, &mut delivery, without_texts.clone(), at(2)).await;
        let (store_id, task_id) = (delivery.store_id, delivery.pickup.id);
        let repeated = async |of: &Incident, content: &IncidentContent| {
            let by = of.api_client_id.unwrap();
            let found = find_repeated(storage.reader(), store_id, task_id, by, content).await;
            found.unwrap().map(|incident| incident.id)
        };

        assert_eq!(repeated(&first, &content("a")).await, Some(first.id));
        assert_eq!(repeated(&bare, &without_texts).await, Some(bare.id));
        let other_metadata = IncidentContent {
            metadata: BTreeMap::new(),
            ..content("a")
        };
        for other in [&content("b"), &other_metadata, &without_texts] {
            assert_eq!(repeated(&first, other).await, None);
        }
        assert_eq!(repeated(&bare, &content("a")).await, None);
        close_one(&storage, &mut delivery, &first, at(3)).await;
        assert_eq!(repeated(&first, &content("a")).await, None);
    }
}

#[tokio::test]
async fn a_reschedule_closes_the_open_incidents_of_its_task() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let mut before = insert_delivery(&storage).await;
        let closed = open(&storage, &mut before, content("a"), at(1)).await;
        let closed = close_one(&storage, &mut before, &closed, at(2)).await;
        let mut rescheduled = open(&storage, &mut before, content("b"), at(3)).await;
        let mut after = before.clone();
        let command = Command::Reschedule(Reschedule {
            window: TimeWindow {
                after: at(10),
                before: at(20),
            },
            is_time_slot: false,
            both: false,
        });
        let applied = after.apply(TaskKind::Pickup, &command, Actor::Dispatch, at(4));
        assert!(applied.unwrap().is_some());
        let history = report(None).events(&before, &after, at(4));

        let changes = deliveries::changes(&before, &after, &history).unwrap();
        let write = storage.write(move |transaction| async move {
            let query = store::Entity::find().into_query();
            changes.make_and_query(&transaction, query).await
        });
        write.await.unwrap();

        rescheduled.closing = Some(Closing {
            at: at(4) + SignedDuration::from_micros(1),
            with: Some("rescheduled".to_owned()),
        });
        assert_eq!(
            all(&storage, of(&after, false), 9).await,
            [rescheduled, closed]
        );
        assert_eq!(stored(&storage, &after).await, after);
        assert_eq!(after.pickup.open_incidents, 0);
    }
}

#[tokio::test]
async fn erased_incidents_keep_when_they_were_open() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let mut delivery = insert_delivery(&storage).await;
        let mut other = insert_delivery(&storage).await;
        let closed = open(&storage, &mut delivery, content("a"), at(1)).await;
        let mut closed = close_one(&storage, &mut delivery, &closed, at(2)).await;
        let mut still_open = open(&storage, &mut delivery, content("b"), at(3)).await;
        let unchanged = open(&storage, &mut other, content("c"), at(4)).await;

        let (store_id, id) = (delivery.store_id, delivery.id);
        let write = storage.write(move |transaction| async move {
            personal_data::erase(&transaction, store_id, id, at(5)).await
        });
        write.await.unwrap();

        for erased in [&mut closed, &mut still_open] {
            erased.content = IncidentContent {
                reason: Some("OTHER".parse().unwrap()),
                ..IncidentContent::default()
            };
            erased.api_client_id = None;
        }
        closed.closing.as_mut().unwrap().with = None;
        let found = all(&storage, of(&delivery, false), 9).await;
        assert_eq!(found, [still_open, closed]);
        assert_eq!(all(&storage, of(&other, false), 9).await, [unchanged]);
        assert_eq!(stored(&storage, &delivery).await.pickup.open_incidents, 1);
    }
}
