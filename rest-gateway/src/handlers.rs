//! The handler of each operation, by its `operationId`.

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, ready},
};

use crate::{
    gateway::HandlerResult,
    request::Request,
    resources::{
        deliveries, demo, docs_page, error_pages, events, health, me, retail_prices,
        self_description, settings, stores, tasks, time_slots, tokens,
        webhooks::{self, notifications, test_send},
    },
};

pub(crate) type Handler = fn(Request) -> BoxFuture<'static, HandlerResult>;

/// The handler of an operation.
pub(crate) fn find(operation_id: &str) -> Handler {
    let mut handlers = HANDLERS.iter();
    let found = handlers.find(|(id, _)| *id == operation_id);
    let (_, handler) = found.expect("a test finds exactly one handler for each operation");
    *handler
}

/// Keeps a row on one line.
macro_rules! handlers {
    ($($operation_id:literal => $handler:expr,)*) => {
        &[$(($operation_id, $handler)),*]
    };
}

/// In the order of the operations.
static HANDLERS: &[(&str, Handler)] = handlers! {
    "issueToken" => |request| tokens::issue(request).boxed(),
    "getAuthorizationServerMetadata" => |request| tokens::get_metadata(request).boxed(),
    "listPublicKeys" => |request| tokens::public_keys(request).boxed(),
    "createDelivery" => |request| deliveries::create(request).boxed(),
    "listDeliveries" => |request| deliveries::list(request).boxed(),
    "assertDelivery" => |request| deliveries::assert(request).boxed(),
    "getDelivery" => |request| deliveries::get(request).boxed(),
    "cancelDelivery" => |request| deliveries::cancel(request).boxed(),
    "getTask" => |request| tasks::get(request).boxed(),
    "completeTask" => |request| tasks::complete(request).boxed(),
    "calculateRetailPrice" => |request| retail_prices::calculate(request).boxed(),
    "getRetailPrice" => |request| retail_prices::get(request).boxed(),
    "listDefaultTimeSlotChoices" => |request| time_slots::list_default_choices(request).boxed(),
    "listTimeSlotChoices" => |request| time_slots::list_choices(request).boxed(),
    "getTimeSlot" => |request| time_slots::get(request).boxed(),
    "createWebhook" => |request| webhooks::create(request).boxed(),
    "listWebhooks" => |request| webhooks::list(request).boxed(),
    "getWebhook" => |request| webhooks::get(request).boxed(),
    "deleteWebhook" => |request| webhooks::delete(request).boxed(),
    "enableWebhook" => |request| webhooks::enable(request).boxed(),
    "disableWebhook" => |request| webhooks::disable(request).boxed(),
    "rotateWebhookSecret" => |request| webhooks::rotate_secret(request).boxed(),
    "confirmWebhookSecret" => |request| webhooks::confirm_secret(request).boxed(),
    "listNotifications" => |request| notifications::list(request).boxed(),
    "recoverWebhook" => |request| notifications::recover(request).boxed(),
    "testWebhook" => |request| test_send::send(request).boxed(),
    "getNotification" => |request| notifications::get(request).boxed(),
    "resendNotification" => |request| notifications::resend(request).boxed(),
    "listEvents" => |request| events::list(request).boxed(),
    "getEvent" => |request| events::get(request).boxed(),
    "getMe" => |request| me::get(request).boxed(),
    "getApiApp" => |request| me::get_by_id(request).boxed(),
    "getStore" => |request| stores::get(request).boxed(),
    "getSettings" => |request| ready(settings::get(&request)).boxed(),
    "getEntrypoint" => |_| ready(self_description::get_entrypoint()).boxed(),
    "getContext" => |request| ready(self_description::get_context(&request)).boxed(),
    "getHydraDocumentation" => |request| ready(self_description::get_hydra(&request)).boxed(),
    "getOpenApi" => |request| ready(Ok(self_description::get_openapi(&request))).boxed(),
    "getDocsPage" => |request| ready(Ok(docs_page::get(&request))).boxed(),
    "getDocsPageFile" => |request| ready(docs_page::get_file(&request)).boxed(),
    "listErrors" => |request| ready(Ok(error_pages::list(&request))).boxed(),
    "explainError" => |request| ready(error_pages::get(&request)).boxed(),
    "isLive" => |_| ready(Ok(health::live())).boxed(),
    "isReady" => |request| health::ready(request).boxed(),
    "completeDemoDelivery" => |request| demo::complete(request).boxed(),
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::api_description::operations;

    #[test]
    fn every_operation_has_exactly_one_handler() {
        let operations = operations::all().chain([&*operations::DEMO]);
        let ids: Vec<_> = operations
            .map(|operation| operation.operation_id.as_str())
            .collect();
        let handled: Vec<_> = HANDLERS.iter().map(|(id, _)| *id).collect();

        assert_eq!(handled, ids);
        let distinct: BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
    }
}
