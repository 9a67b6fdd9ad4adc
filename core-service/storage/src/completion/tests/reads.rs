//! What is read before a completion.

use futures_util::future::join_all;

use super::*;

#[tokio::test]
async fn a_disabled_webhook_and_that_of_another_store_are_none() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let delivery = stored_delivery(&storage).await;
        insert_webhook(&storage, fixture::webhook(CREATED)).await;
        insert_webhook(&storage, disabled_webhook(&delivery)).await;

        let pickup = read(&storage, delivery.pickup.id).await;
        assert_eq!(pickup.subscribed, []);
        assert!(find(&storage, TaskId::new()).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn tasks_that_are_read_together_have_their_own_states() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let mut expected = Vec::new();
        let (picked, completed) = (EventName::DeliveryPicked, EventName::DeliveryCompleted);
        for (pickup_is_done, subscribed) in [
            (false, vec![]),
            (true, vec![picked]),
            (false, vec![completed]),
            (true, vec![picked, completed]),
        ] {
            let mut delivery = stored_delivery(&storage).await;
            if pickup_is_done {
                delivery.complete_task(delivery.pickup.id, now()).unwrap();
                let changes = deliveries::completion(&delivery, &delivery.pickup, now());
                change(&storage, changes.unwrap()).await;
            }
            for event in &subscribed {
                insert_webhook(&storage, webhook(&delivery, *event)).await;
            }
            let store_id = delivery.store_id;
            expected.push((
                store_id,
                delivery.dropoff,
                pickup_is_done,
                subscribed.clone(),
            ));
            expected.push((store_id, delivery.pickup, false, subscribed));
        }
        let before = fixture::statements(&storage, "SELECT").await;

        let reads = expected.iter().map(|(_, task, ..)| read(&storage, task.id));
        let found = join_all(reads).await.into_iter();

        let found = found.map(|found| {
            let TaskToComplete {
                store,
                task,
                other_is_done,
                subscribed,
            } = found;
            (store.id, task, other_is_done, subscribed)
        });
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!(fixture::statements(&storage, "SELECT").await - before, 1);
    }
}
