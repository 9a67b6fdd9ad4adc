//! In the lists of which day tasks are put.

use jiff::SignedDuration;
use proto::{AssignTasksRequest, CreateStoreRequest};

use super::{Desk, Order, TODAY, TOMORROW, assignment, orders, place, tasks};
use crate::harness::{ApiClient, Platform};

/// A shop whose own day is another one: there it is 6 hours earlier.
async fn shop_in_new_york(platform: &Platform) -> ApiClient {
    let operator = platform.operator().await;
    let store = CreateStoreRequest {
        display_name: "A shop in New York".to_owned(),
        time_zone: Some("America/New_York".to_owned()),
        ..Default::default()
    };
    let store = operator.create_store_with(store).await;
    let scopes = ["deliveries", "tasks"];
    let credentials = operator.create_client(&store, &scopes).await;
    platform.client_for(&credentials, &scopes).await
}

on_both_databases! {
    /// "The first day of the task's window that is not past, else today": of the platform, at 11:00 in Paris.
    async fn a_task_goes_to_the_first_day_of_its_window_that_is_not_past(platform: &Platform) {
        let desk = Desk::authorized(platform).await;
        let shops = [platform.client().await, shop_in_new_york(platform).await];
        let ada = desk.courier("Ada").await;

        for (window, day) in [
            ("2020-04-03T10:00:00Z/2020-04-03T12:00:00Z", TOMORROW),
            ("2020-04-02T10:00:00Z/2020-04-02T12:00:00Z", TODAY),
            // They have begun: today, and on the day before.
            ("2020-04-02T08:00:00Z/2020-04-02T10:00:00Z", TODAY),
            ("2020-04-01T10:00:00Z/2020-04-04T10:00:00Z", TODAY),
            // They are over.
            ("2020-04-01T10:00:00Z/2020-04-01T12:00:00Z", TODAY),
            ("2020-03-01T10:00:00Z/2020-03-01T12:00:00Z", TODAY),
            // On two days.
            ("2020-04-03T20:00:00Z/2020-04-04T02:00:00Z", TOMORROW),
            // To the day's last minute, and from its first, of which the date is another one elsewhere.
            ("2020-04-02T21:58:00Z/2020-04-02T21:59:00Z", TODAY),
            ("2020-04-02T22:00:00Z/2020-04-02T22:01:00Z", TOMORROW),
            ("2020-04-03T21:58:00Z/2020-04-03T21:59:00Z", TOMORROW),
            ("2020-04-03T22:00:00Z/2020-04-03T22:01:00Z", "2020-04-04"),
        ] {
            for shop in &shops {
                let order = Order::within(shop, window, window).await;
                assert_eq!(desk.assign(&[&order.pickup], "", &ada).await, [""; 0], "{window}");

                for task in tasks(&[&order]) {
                    assert_eq!(desk.task(&task).await.list_day, day, "{window}");
                }
                desk.assign(&[&order.pickup], &ada, "").await;
            }
        }
    }

    async fn tasks_of_one_request_go_to_the_lists_of_their_days(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [today, tomorrow] = [Order::on(&client, TODAY).await, Order::on(&client, TOMORROW).await];

        let conflicts = desk.assign(&[&tomorrow.pickup, &today.pickup], "", &ada).await;

        assert_eq!(conflicts, [""; 0]);
        assert_eq!(desk.tasks_of(TODAY, &ada).await, tasks(&[&today]));
        assert_eq!(desk.tasks_of(TOMORROW, &ada).await, tasks(&[&tomorrow]));
    }

    async fn today_is_the_day_on_which_a_task_is_assigned(platform: &Platform) {
        let client = platform.client().await;
        let [order]: [Order; 1] = orders(&client).await;
        platform.advance(SignedDuration::from_hours(24));
        // With a token that is valid by then.
        let desk = Desk::authorized(platform).await;
        let ada = desk.courier("Ada").await;

        desk.assign(&[&order.pickup], "", &ada).await;

        assert_eq!(desk.lists("").await, desk.lists(TOMORROW).await);
        assert_eq!(desk.tasks_of(TOMORROW, &ada).await, tasks(&[&order]));
    }

    async fn a_requested_day_need_not_touch_the_window(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [order]: [Order; 1] = orders(&client).await;

        let mut expected = "";
        for day in [TOMORROW, "2020-12-31", TODAY, "2024-02-29"] {
            let request = AssignTasksRequest {
                day: day.to_owned(),
                ..assignment(&[&order.pickup], expected, &ada)
            };

            let assigned = desk.assign_tasks(request).await.unwrap();

            assert_eq!(assigned.conflicts, [""; 0], "{day}");
            assert_eq!(desk.tasks_of(day, &ada).await, tasks(&[&order]));
            assert_eq!(desk.place(&order.dropoff).await, place(&ada, day, 1));
            expected = &ada;
        }
        for emptied in [TODAY, TOMORROW, "2020-12-31"] {
            assert_eq!(desk.lists(emptied).await.lists, [], "{emptied}");
        }
    }
}
