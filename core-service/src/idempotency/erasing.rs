//! Erases personal data in stored responses.

use jiff::{SignedDuration, Timestamp};
use prost::Message as _;

use domain::{
    id::{DeliveryId, StoreId},
    task::FailureReason,
};
use proto::iri::Collection;
use storage::idempotency_keys::{self, Listed};

use super::{CommandResponse, Idempotency, request};
use crate::error::Error;

/// The longest time between the acquisition of a request's key and the creation of its delivery.
const LONGEST_REQUEST: SignedDuration = SignedDuration::from_hours(1);

/// The most responses that are read at once.
const PAGE: u64 = 500;

impl Idempotency {
    /// Replaces the personal data in stored responses that contain a delivery, one of its tasks or their incidents, by that of
    /// the erased delivery. A repetition of such a request gets the erased data.
    pub(crate) async fn erase_responses(
        &self,
        store_id: StoreId,
        id: DeliveryId,
        erased: &proto::Delivery,
        created_at: Timestamp,
    ) -> Result<(), Error> {
        let since = created_at
            .checked_sub(LONGEST_REQUEST)
            .unwrap_or(created_at);
        for listed in [Listed::OfDelivery(id), Listed::Unnamed(since)] {
            self.erase_listed(store_id, listed, erased).await?;
        }
        Ok(())
    }

    async fn erase_listed(
        &self,
        store_id: StoreId,
        listed: Listed,
        erased: &proto::Delivery,
    ) -> Result<(), Error> {
        let mut after = None;
        loop {
            let reader = self.storage.reader();
            let page = idempotency_keys::list(reader, store_id, listed, after, PAGE).await?;
            let is_last = u64::try_from(page.len()).is_ok_and(|length| length < PAGE);
            after = page.last().map(|(key, _)| *key);
            let mut replaced = Vec::new();
            for (key, encrypted) in page {
                let plain = request::decrypt(&self.secret_box, key, &encrypted)?;
                let replacement = replace_tasks(&plain, erased)
                    .or_else(|| replace_task(&plain, erased))
                    .or_else(|| replace_incident(&plain, erased));
                if let Some(replacement) = replacement {
                    replaced.push((key, request::encrypt(&self.secret_box, key, &replacement)));
                }
            }
            if !replaced.is_empty() {
                let stored = self.storage.write(move |transaction| async move {
                    for (key, encrypted) in replaced {
                        idempotency_keys::store_response(&transaction, key, encrypted).await?;
                    }
                    Ok::<_, Error>(())
                });
                stored.await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

/// The response with the personal data of the erased tasks; `None` if it is not the delivery. The
/// type of a stored response is not stored, but only the delivery has its name.
fn replace_tasks(plain: &[u8], erased: &proto::Delivery) -> Option<Vec<u8>> {
    let mut delivery = proto::Delivery::decode(plain).ok()?;
    replace_tasks_of(&mut delivery, erased).then(|| delivery.encode_to_vec())
}

/// Whether it is the delivery.
fn replace_tasks_of(delivery: &mut proto::Delivery, erased: &proto::Delivery) -> bool {
    if delivery.name != erased.name {
        return false;
    }
    // They quote texts, and name members, that the client chose.
    delivery.warnings.clear();
    delivery.tracking_url.clear();
    for (task, erased) in [
        (&mut delivery.pickup, &erased.pickup),
        (&mut delivery.dropoff, &erased.dropoff),
    ] {
        if let (Some(task), Some(erased)) = (task, erased) {
            replace(task, erased);
        }
    }
    true
}

/// Like [`replace_tasks`], of the response to a command on the delivery or on one of its tasks.
fn replace_task(plain: &[u8], erased: &proto::Delivery) -> Option<Vec<u8>> {
    let mut response = CommandResponse::decode(plain).ok()?;
    if let Some(delivery) = &mut response.delivery {
        return replace_tasks_of(delivery, erased).then(|| response.encode_to_vec());
    }
    let task = response.task.as_mut()?;
    let tasks = [&erased.pickup, &erased.dropoff];
    let mut tasks = tasks.into_iter().flatten();
    let erased = tasks.find(|erased| !erased.name.is_empty() && erased.name == task.name)?;
    replace(task, erased);
    Some(response.encode_to_vec())
}

/// Like [`replace_tasks`], of an incident of one of the tasks.
fn replace_incident(plain: &[u8], erased: &proto::Delivery) -> Option<Vec<u8>> {
    let mut incident = proto::Incident::decode(plain).ok()?;
    Collection::Incidents.id(&incident.name)?;
    let mut tasks = [&erased.pickup, &erased.dropoff].into_iter().flatten();
    tasks.find(|task| !task.name.is_empty() && task.name == incident.task)?;
    incident.description.clear();
    incident.metadata.clear();
    incident.closed_with.clear();
    incident.api_client.clear();
    erase_reason(&mut incident.failure_reason);
    Some(incident.encode_to_vec())
}

fn replace(task: &mut proto::Task, erased: &proto::Task) {
    task.address.clone_from(&erased.address);
    task.comments.clone_from(&erased.comments);
    task.tags.clone_from(&erased.tags);
    task.metadata.clone_from(&erased.metadata);
    task.images.clear();
    erase_reason(&mut task.failure_reason);
}

fn erase_reason(code: &mut String) {
    if let Ok(mut reason) = code.parse::<FailureReason>() {
        reason.erase();
        reason.as_str().clone_into(code);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::id::ApiClientId;
    use process::clock::Clock;
    use storage::{
        fixture,
        idempotency_keys::{Key, Request},
    };
    use uuid::Uuid;

    use super::*;
    use crate::secrets::secret_box::SecretBox;

    const STORE: StoreId = StoreId(Uuid::nil());
    const CREATED_AT: Timestamp = Timestamp::UNIX_EPOCH;

    fn key(number: u64) -> Key {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&number.to_be_bytes());
        Key {
            store_id: STORE,
            api_client_id: ApiClientId(Uuid::nil()),
            hash,
        }
    }

    /// A delivery whose tasks have `text` everywhere.
    fn delivery(name: &str, text: &str, status: proto::task::Status) -> proto::Delivery {
        let task = proto::Task {
            status: status.into(),
            address: Some(proto::Address {
                street_address: text.to_owned(),
                ..proto::Address::default()
            }),
            comments: text.to_owned(),
            tags: vec![text.to_owned()],
            metadata: [("key".to_owned(), text.to_owned())].into(),
            ..proto::Task::default()
        };
        proto::Delivery {
            name: name.to_owned(),
            pickup: Some(task.clone()),
            dropoff: Some(task),
            tracking_url: text.to_owned(),
            warnings: Vec::from_iter((!text.is_empty()).then(|| proto::Warning {
                field: format!("pickup.metadata.{text}"),
                ..proto::Warning::default()
            })),
            ..proto::Delivery::default()
        }
    }

    #[test]
    fn the_response_to_a_command_loses_the_data_of_its_task() {
        let task = |name: &str, text: &str, reason: &str| proto::Task {
            name: name.to_owned(),
            comments: text.to_owned(),
            tags: vec![text.to_owned()],
            failure_reason: reason.to_owned(),
            ..proto::Task::default()
        };
        let erased = proto::Delivery {
            dropoff: Some(task("tasks/2", "", "OTHER")),
            ..proto::Delivery::default()
        };
        let stored = |task| CommandResponse::of_task(task).encode_to_vec();

        let replaced = replace_task(&stored(task("tasks/2", "Zoé", "ZOE_SLEEPS")), &erased);

        let expected = task("tasks/2", "", "OTHER");
        assert_eq!(replaced, Some(stored(expected)));
        let cancelled = |text: &str| {
            let delivery = delivery("deliveries/1", text, proto::task::Status::Todo);
            CommandResponse::of_delivery(delivery).encode_to_vec()
        };
        let erased_delivery = delivery("deliveries/1", "", proto::task::Status::Todo);
        let replaced = replace_task(&cancelled("Zoé"), &erased_delivery);
        assert_eq!(replaced, Some(cancelled("")));
        assert_eq!(replace_tasks(&cancelled("Zoé"), &erased_delivery), None);
        assert_eq!(replace_task(&cancelled("Zoé"), &erased), None);
        for other in [stored(task("tasks/1", "Zoé", "")), erased.encode_to_vec()] {
            assert_eq!(replace_task(&other, &erased), None);
        }
    }

    #[test]
    fn the_response_to_a_report_of_an_incident_loses_its_data() {
        let id = Uuid::from_u128(7);
        let incident = proto::Incident {
            name: Collection::Incidents.name(id),
            task: "tasks/2".to_owned(),
            ..proto::Incident::default()
        };
        let with_data = |task: &str| proto::Incident {
            task: task.to_owned(),
            description: "Zoé".to_owned(),
            failure_reason: "ZOE_SLEEPS".to_owned(),
            metadata: [("key".to_owned(), "Zoé".to_owned())].into(),
            closed_with: "woke Zoé".to_owned(),
            api_client: "api_apps/1".to_owned(),
            ..incident.clone()
        };
        let erased = proto::Delivery {
            dropoff: Some(proto::Task {
                name: "tasks/2".to_owned(),
                ..proto::Task::default()
            }),
            ..proto::Delivery::default()
        };

        let replaced = replace_incident(&with_data("tasks/2").encode_to_vec(), &erased);

        let expected = proto::Incident {
            failure_reason: "OTHER".to_owned(),
            ..incident.clone()
        };
        assert_eq!(replaced, Some(expected.encode_to_vec()));
        let other = with_data("tasks/1").encode_to_vec();
        assert_eq!(replace_incident(&other, &erased), None);
        for replace in [replace_tasks, replace_task] {
            assert_eq!(
                replace(&with_data("tasks/2").encode_to_vec(), &erased),
                None
            );
        }
    }

    async fn store_all(idempotency: &Idempotency, responses: &[(u64, Timestamp, Vec<u8>)]) {
        let secret_box = Arc::clone(&idempotency.secret_box);
        let rows: Arc<[_]> = responses
            .iter()
            .map(|(number, now, plain)| {
                let key = key(*number);
                (key, *now, request::encrypt(&secret_box, key, plain))
            })
            .collect();
        let write = idempotency.storage.write(move |transaction| async move {
            for (key, now, encrypted) in rows.iter() {
                let request = Request {
                    hash: [0; 32],
                    delivery_id: None,
                };
                let cutoff = Timestamp::MIN;
                idempotency_keys::acquire(&transaction, *key, request, *now, cutoff).await?;
                idempotency_keys::store_response(&transaction, *key, encrypted.clone()).await?;
            }
            Ok::<_, Error>(())
        });
        write.await.unwrap();
    }

    #[tokio::test]
    async fn responses_of_earlier_versions_lose_the_data_of_the_erased_delivery_only() {
        use proto::task::Status::{Done, Todo};

        let (directory, storage) = fixture::sqlite().await;
        let master_key = directory.path().join("master.key");
        let idempotency = Idempotency {
            storage,
            secret_box: Arc::new(SecretBox::open_or_create(&master_key).unwrap()),
            clock: Clock::manual(CREATED_AT),
        };
        let created = delivery("deliveries/1", "Zoé", Todo).encode_to_vec();
        let other = delivery("deliveries/2", "Zoé", Todo).encode_to_vec();
        let earliest = CREATED_AT - LONGEST_REQUEST;
        let mut responses = vec![
            (0, CREATED_AT, created.clone()),
            (1, CREATED_AT, other.clone()),
            (2, CREATED_AT, b"not a message".to_vec()),
            (
                3,
                earliest - SignedDuration::from_micros(1),
                created.clone(),
            ),
        ];
        // On the second page.
        responses.extend((4..=PAGE).map(|number| (number, CREATED_AT, other.clone())));
        responses.push((PAGE + 1, earliest, created));
        store_all(&idempotency, &responses).await;
        let storage = &idempotency.storage;
        fixture::execute(storage, "UPDATE idempotency_keys SET delivery_id = NULL").await;

        let erased = delivery("deliveries/1", "", Done);
        let id = DeliveryId::new();
        let result = idempotency.erase_responses(STORE, id, &erased, CREATED_AT);
        result.await.unwrap();

        let expected = delivery("deliveries/1", "", Todo).encode_to_vec();
        for (number, _, before) in responses {
            let reader = idempotency.storage.reader();
            let found = idempotency_keys::find(reader, key(number), Timestamp::MIN).await;
            let encrypted = found.unwrap().unwrap().encrypted_response;
            let plain = request::decrypt(&idempotency.secret_box, key(number), &encrypted);
            let expected = match number {
                0 => &expected,
                number if number == PAGE + 1 => &expected,
                _ => &before,
            };
            assert_eq!(*plain.unwrap(), *expected, "{number}");
        }
    }
}
