//! Reports of two couriers at one instant, at one core and at two: one wins, the other is kept.

use proto::task::State;

use super::{End, Remarks, count, incidents, minute, move_away};
use crate::{
    couriers::{Desk, Order, assert_refused, orders, phone::phone},
    harness::{ApiClient, Platform},
};

const ROUNDS: usize = 10;

/// One that had the task and one that has it; each at a core of its own, if there are two.
struct Couriers {
    ada: String,
    ben: String,
    /// Of Ada, Ada again, and Ben.
    phones: [Desk; 3],
}

impl Couriers {
    async fn at(platforms: [&Platform; 2], desk: &Desk) -> Self {
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second] = platforms;
        let phones = [
            phone(first, &ada).await,
            phone(second, &ada).await,
            phone(second, &ben).await,
        ];
        Self { ada, ben, phones }
    }
}

async fn report_at_once(platform: &Platform, desk: &Desk, couriers: &Couriers, client: &ApiClient) {
    let [of_ada, again_of_ada, of_ben] = &couriers.phones;
    for round in 0..ROUNDS {
        let [order]: [Order; 1] = orders(client).await;
        let task = &order.pickup;
        move_away(platform, desk, &order, [&couriers.ada, &couriers.ben]).await;
        minute(platform);
        let remarks = Remarks::of_a_minute_ago(platform);

        let (by_ada, same_by_ada, by_ben) = tokio::join!(
            End::Done.report(of_ada, task, &remarks),
            End::Done.report(again_of_ada, task, &remarks),
            End::Failed.report(of_ben, task, &remarks),
        );

        let state = desk.task(task).await.state();
        // Of whom has won the report is applied, and its repetition changes nothing.
        let has_ada_won = state == State::Done;
        for (reported, has_won) in [
            (by_ada, has_ada_won),
            (same_by_ada, has_ada_won),
            (by_ben, !has_ada_won),
        ] {
            match reported {
                Ok(_) => assert!(has_won, "{round}"),
                Err(refused) => {
                    assert!(!has_won, "{round}");
                    assert_refused(&refused, "TASK_STATE");
                }
            }
        }
        let counts = [
            count(desk, task, "task:done").await,
            count(desk, task, "task:failed").await,
            count(desk, task, "task:conflict").await,
            incidents(desk, task).await.len(),
        ];
        let expected = if has_ada_won {
            // The late report and the conflict of Ben.
            [1, 0, 1, 2]
        } else {
            [0, 1, 1, 1]
        };
        assert_eq!(counts, expected, "{round}");
    }
}

/// A task leaves the list while its courier reports of it, which is late or not.
async fn move_and_report(
    platform: &Platform,
    desk: &Desk,
    couriers: &Couriers,
    client: &ApiClient,
) {
    let of_ada = &couriers.phones[1];
    for round in 0..ROUNDS {
        let [order]: [Order; 1] = orders(client).await;
        desk.assign(&[&order.pickup], "", &couriers.ada).await;
        minute(platform);
        let remarks = Remarks::of_a_minute_ago(platform);
        let moves = [&order.dropoff];

        let (done, conflicts) = tokio::join!(
            End::Done.report(of_ada, &order.pickup, &remarks),
            desk.assign(&moves, &couriers.ada, &couriers.ben),
        );

        let done = done.unwrap();
        assert_eq!((done.state(), conflicts.len()), (State::Done, 0), "{round}");
        let is_late = desk.task(&order.pickup).await.courier == couriers.ben;
        assert_eq!(done.has_incidents, is_late, "{round}");
        let found = incidents(desk, &order.pickup).await;
        assert_eq!(found.len(), usize::from(is_late), "{round}");
    }
}

on_both_databases! {
    async fn of_two_couriers_at_one_instant_one_wins_and_the_other_is_kept(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let couriers = Couriers::at([platform; 2], &desk).await;

        report_at_once(platform, &desk, &couriers, &client).await;
    }

    async fn a_report_is_applied_while_its_task_leaves_the_list(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let couriers = Couriers::at([platform; 2], &desk).await;

        move_and_report(platform, &desk, &couriers, &client).await;
    }
}

/// "Two commands at one instant on two cores: one wins, the other learns which."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_cores_take_late_reports_as_one_does() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let client = platforms[0].client().await;
    let desk = Desk::authorized(&platforms[0]).await;
    let couriers = Couriers::at([&platforms[0], &platforms[1]], &desk).await;

    report_at_once(&platforms[0], &desk, &couriers, &client).await;
    move_and_report(&platforms[0], &desk, &couriers, &client).await;

    Platform::stop_both(platforms).await;
}
