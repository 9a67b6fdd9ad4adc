//! `ListTasks` and `WatchTasks` of one store.

use proto::{ListTasksRequest, WatchTasksRequest};
use tonic::Code;

use super::{Reader, Shop};
use crate::harness::{Platform, UNKNOWN_ID};

fn of(store: &str) -> ListTasksRequest {
    ListTasksRequest {
        day: "2020-04-02".to_owned(),
        store: store.to_owned(),
        ..ListTasksRequest::default()
    }
}

on_both_databases! {
    async fn the_tasks_of_a_day_are_listed_and_watched_by_store(platform: &Platform) {
        let [first, second] = Shop::both(platform).await;
        let reader = Reader::of_all_stores(platform).await;
        let soon = "2020-04-02 20:00";
        let [of_first, of_second] = [first.deliver(soon).await, second.deliver(soon).await];

        for (shop, delivery) in [(&first, &of_first), (&second, &of_second)] {
            let mut request = ListTasksRequest { page_size: Some(1), ..of(&shop.store) };
            for is_last in [false, true] {
                let page = reader.list_tasks(request.clone()).await.unwrap();
                let found: Vec<_> = page.tasks.iter().map(|task| (&task.store, &task.delivery)).collect();
                assert_eq!(found, [(&shop.store, delivery)]);
                assert_eq!(page.next_page_token.is_empty(), is_last);
                request.page_token = page.next_page_token;
            }
        }
        assert_eq!(reader.list_tasks(of("")).await.unwrap().tasks.len(), 4);
        let unknown = format!("stores/{UNKNOWN_ID}");
        let refused = reader.list_tasks(of(&unknown)).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound);
        let refused = reader.list_tasks(of("stores/1")).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);

        let list = of(&second.store);
        let position = reader.list_tasks(list.clone()).await.unwrap().position;
        let request = WatchTasksRequest { after_position: Some(position), list: Some(list.clone()) };
        let mut changes = reader.watch_tasks(request).await.unwrap();
        let other = first.deliver(soon).await;
        let new = second.deliver(soon).await;
        let (mut shown, mut left) = (Vec::new(), Vec::new());
        // The first deliveries may have been logged only after the list was read.
        while shown.len() < 2 {
            let change = changes.message().await.unwrap().unwrap();
            assert!(change.tasks.iter().all(|task| task.store == second.store), "{change:?}");
            shown.extend(change.tasks.into_iter().filter(|task| task.delivery == new));
            left.extend(change.left);
        }
        let other = reader.get(&other).await.unwrap();
        assert!(left.contains(&other.dropoff.unwrap().name), "{left:?}");
        let mut listed = reader.list_tasks(list).await.unwrap().tasks;
        listed.retain(|task| task.delivery == new);
        assert_eq!(shown, listed);
    }
}
