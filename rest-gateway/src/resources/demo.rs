//! `/api/demo`: routes that only the demo serves, and only on loopback. They are not part of the
//! API, so no document describes them.

use proto::{
    CompleteTaskRequest, GetDeliveryRequest, IssueTokenRequest,
    deliveries_client::DeliveriesClient, iri::Collection, tasks_client::TasksClient,
    tokens_client::TokensClient,
};
use tonic::metadata::MetadataValue;

use crate::{
    config::DemoCourier,
    core_pool::{CallOptions, rpc},
    error::Error,
    request::{HandlerResult, Request},
    resources::deliveries,
};

const COURIERS_SCOPE: &str = "tasks:all";

/// `POST /api/demo/deliveries/{id}/complete`: completes both tasks of a delivery of the caller's
/// store.
pub(crate) async fn complete(request: Request) -> HandlerResult {
    let client = request.gateway.demo_courier.as_ref();
    let courier = client.ok_or_else(Error::no_such_path)?;
    let message = GetDeliveryRequest {
        name: Collection::Deliveries.name(&request.parameter),
    };
    // With the caller's token: core decides whether the caller may read the delivery.
    let delivery = request
        .call(message, rpc!(DeliveriesClient.get_delivery))
        .await?;

    let options = as_courier(courier, &request).await?;
    for task in [delivery.pickup, delivery.dropoff].into_iter().flatten() {
        let message = CompleteTaskRequest { name: task.name };
        request
            .gateway
            .core
            .call(options.clone(), message, rpc!(TasksClient.complete_task))
            .await?;
    }
    deliveries::get(request).await
}

/// Options for calls to core with an access token of the courier.
async fn as_courier(courier: &DemoCourier, request: &Request) -> Result<CallOptions, Error> {
    let message = IssueTokenRequest {
        api_key: courier.api_key.clone(),
        api_secret: courier.api_secret.expose().clone(),
        scopes: vec![COURIERS_SCOPE.to_owned()],
    };
    let token = request
        .call_without_token(message, rpc!(TokensClient.issue_token))
        .await?;
    let authorization = MetadataValue::try_from(format!("Bearer {}", token.access_token));
    Ok(CallOptions {
        authorization: Some(authorization.map_err(Error::internal)?),
        ..request.anonymous_call_options()
    })
}
