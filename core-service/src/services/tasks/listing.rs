//! Lists of the tasks of all stores on a day, in pages.

use domain::{api_client::Scope, id::CourierId, violation::Violations};
use jiff::Timestamp;
use proto::{iri::Collection, list_tasks_request};
use storage::{
    pages::{Cursor, Start},
    task_changes,
    task_lists::{self, CourierFilter, Filter, ListedTask, Order, Position},
};

use super::{reads_any_store, requests::read_filter};
use crate::{
    auth::caller::Caller,
    error::Error,
    messages::{
        self,
        pages::{self, NOT_OF_LIST},
    },
    planning::validation,
    services::Services,
};

impl Services {
    pub(super) fn read_task_filter(
        &self,
        request: &proto::ListTasksRequest,
        violations: &mut Violations,
    ) -> Result<Filter, Error> {
        let zone = self.config.platform.timezone.clone();
        read_filter(request, &self.clock.now().to_zoned(zone), violations)
    }

    /// The position of the last change that watchers get.
    pub(in crate::services) async fn change_position(&self) -> Result<i64, Error> {
        Ok(task_changes::bounds(self.storage.reader()).await?.last)
    }

    pub(super) async fn list_page(
        &self,
        caller: &Caller,
        request: &proto::ListTasksRequest,
    ) -> Result<proto::ListTasksResponse, Error> {
        if !reads_any_store(caller) {
            caller.require(Scope::TasksAll)?;
        }
        let mut violations = Violations::new();
        let size = pages::read_size(request.page_size, &mut violations);
        let order = read_order(request.order, &mut violations);
        let after = read_position(&request.page_token, order, &mut violations);
        let filter = self.read_task_filter(request, &mut violations);
        if let (Some(_), Ok(filter)) = (caller.courier(), &filter) {
            let today = self.today();
            if ![Some(today), today.yesterday().ok()].contains(&Some(filter.list_day)) {
                violations.add("day", "OUT_OF_RANGE", "must be today or yesterday");
            }
            if filter.include_overdue {
                let reason = "is not for couriers: list yesterday and today";
                violations.add("include_overdue", "CONFLICT", reason);
            }
        }
        Error::check(violations)?;
        let mut filter = filter?;
        if let Some(id) = caller.courier() {
            filter.courier = CourierFilter::One(id);
        }
        if let Some(id) = filter.store_id {
            let store = storage::stores::find(self.storage.reader(), id).await?;
            store.ok_or_else(|| Error::NotFound(Collection::Stores.name(id)))?;
        }

        // Read before the tasks: a watch from here misses no change of them.
        let position = if after.is_none() {
            self.change_position().await?
        } else {
            0
        };
        let page = task_lists::read(self.storage.reader(), &filter, order, after, size);
        let (mut page, has_more) = page.await?;
        let text_bytes = |listed: &ListedTask| {
            listed.task.address.text_bytes() + validation::text_bytes(&listed.task.details)
        };
        let has_more = pages::shorten(&mut page, Start::Newest, text_bytes) || has_more;
        let last = page.last().filter(|_| has_more);
        let next_page_token = last.map(|last| token(last.position(&filter, order)));
        Ok(proto::ListTasksResponse {
            tasks: page.into_iter().map(messages::listed_task).collect(),
            next_page_token: next_page_token.unwrap_or_default(),
            position,
            day: filter.list_day.to_string(),
        })
    }
}

fn read_order(order: i32, violations: &mut Violations) -> Order {
    match list_tasks_request::Order::try_from(order) {
        Ok(list_tasks_request::Order::Unspecified) => Order::End,
        Ok(list_tasks_request::Order::List) => Order::List,
        Err(_) => {
            violations.add("order", "UNKNOWN_VALUE", "must be LIST, or absent");
            Order::End
        }
    }
}

/// The position after which a page begins; `None` for the first page.
fn read_position(token: &str, order: Order, violations: &mut Violations) -> Option<Position> {
    if order == Order::End {
        return pages::read_next(token, violations).map(Position::End);
    }
    match pages::read_token(token, violations) {
        Start::Newest => None,
        Start::NewerThan(cursor) => Some(Position::End(cursor)),
        Start::OlderThan(cursor) => {
            let place = u32::try_from(cursor.created_at.as_microsecond()).ok();
            let courier_id = CourierId(cursor.id);
            let place = place.map(|place| Position::Place { courier_id, place });
            violations.check("page_token", "INVALID_CURSOR", place.ok_or(NOT_OF_LIST))
        }
    }
}

/// A place has the other direction than the end of a window, and its number for an instant.
fn token(position: Position) -> String {
    pages::encode(match position {
        Position::End(cursor) => Start::NewerThan(cursor),
        Position::Place { courier_id, place } => Start::OlderThan(Cursor {
            created_at: Timestamp::from_microsecond(place.into()).unwrap_or(Timestamp::MAX),
            id: courier_id.0,
        }),
    })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_position_is_read_from_its_token_in_its_order() {
        let cursor = Cursor {
            created_at: "2020-04-02T09:00:00.000001Z".parse().unwrap(),
            id: Uuid::from_u128(7),
        };
        let place = |place| Position::Place {
            courier_id: CourierId(Uuid::from_u128(7)),
            place,
        };
        let [end, first, last] = [Position::End(cursor), place(0), place(u32::MAX)];
        for (position, order, is_valid) in [
            (end, Order::End, true),
            (end, Order::List, true),
            (first, Order::List, true),
            (last, Order::List, true),
            (first, Order::End, false),
        ] {
            let mut violations = Violations::new();
            let read = read_position(&token(position), order, &mut violations);
            assert_eq!(read, is_valid.then_some(position), "{position:?} {order:?}");
            assert_eq!(violations.is_empty(), is_valid, "{position:?} {order:?}");
        }
        let mut violations = Violations::new();
        let beyond = pages::encode(Start::OlderThan(cursor));
        assert_eq!(read_position(&beyond, Order::List, &mut violations), None);
        assert!(violations.has_violation_in("page_token"));
    }
}
