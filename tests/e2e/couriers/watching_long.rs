//! `WatchTasks` of a board that was away for long.

use proto::ListTasksRequest;

use super::{Desk, Order, TODAY, assert_violations, on, orders, watching_lists::Board};
use crate::harness::Platform;

/// More than a message has changes, and than core keeps for streams that are behind.
const ORDERS: usize = 100;

on_both_databases! {
    async fn a_board_that_was_away_gets_hundreds_of_changes(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let mut board = Board::read(&desk, &on(TODAY)).await;
        let orders: [Order; ORDERS] = orders(&client).await;
        let pickups: Vec<_> = orders.iter().map(|order| order.pickup.clone()).collect();
        assert_eq!(desk.assign(&pickups, "", &ada).await, [""; 0]);
        for pickup in &pickups {
            desk.start(pickup).await;
        }

        board.watch(&desk).await;
        board.catch_up(&desk).await;

        assert_eq!(board.shown.tasks.len(), 2 * ORDERS);
        assert_eq!(board.shown.lists[&ada].tasks.len(), 2 * ORDERS);
    }

    async fn a_watch_from_a_position_names_the_day_of_its_list(platform: &Platform) {
        let desk = Desk::authorized(platform).await;
        let of_today = ListTasksRequest::default();
        let listed = desk.list_tasks(of_today.clone()).await.unwrap();
        assert_eq!(listed.day, TODAY);

        let refused = desk.watch(Some(listed.position), &of_today).await;
        assert_violations(&refused.err().unwrap(), &["list"]);
        assert!(desk.watch(None, &of_today).await.is_ok());
        assert!(desk.watch(Some(listed.position), &on(&listed.day)).await.is_ok());
    }
}
