//! Cancels deliveries, with the conditions that depend on who does it.

use std::sync::Arc;

use domain::{
    api_client::Scope,
    delivery::Delivery,
    id::DeliveryId,
    task::Actor,
    task_event::{Remarks, TaskReport},
};
use proto::iri::Collection;
use tonic::Response;

use super::message;
use crate::{
    auth::caller::Caller,
    error::Error,
    idempotency::CommandResponse,
    messages,
    services::{
        Services,
        delivery_changes::{DeliveryWriter, TASK_STATE, WrittenEvents},
    },
};

const RPC: &str = "CancelDelivery";

/// The stored response, and what is to be dispatched; `None` if nothing has changed.
type Cancelled = (Response<CommandResponse>, Option<WrittenEvents>);

impl Services {
    pub(super) async fn cancel_or_replay(
        &self,
        caller: &Arc<Caller>,
        request: proto::CancelDeliveryRequest,
    ) -> Result<Response<proto::Delivery>, Error> {
        let name = request.name.clone();
        let (response, events) = self.write_cancellation(caller, request).await?;
        let effect = self.finish(&response, events);
        let reply = CommandResponse::into_delivery(response, TASK_STATE)?;
        caller.audit_effect(RPC, &name, effect);
        Ok(reply)
    }

    async fn write_cancellation(
        &self,
        caller: &Arc<Caller>,
        request: proto::CancelDeliveryRequest,
    ) -> Result<Cancelled, Error> {
        let (name, caller) = (request.name, Arc::clone(caller));
        let (store, by) = if caller.has(Scope::Dispatch) {
            let find = |id| self.find_store_of(DeliveryId(id));
            let store = messages::find_resource(Collection::Deliveries, &name, find).await?;
            (store, Actor::Dispatch)
        } else {
            caller.require(Scope::Deliveries)?;
            (caller.store()?.clone(), Actor::Shop)
        };
        let id = DeliveryId(messages::id_in(Collection::Deliveries, &name)?);
        let key = self
            .idempotency
            .read_key(&caller, RPC, &name, request.idempotency)?
            .map(|key| key.of_delivery(store.id, id));
        if let Some(replayed) = self.idempotency.replay(key).await? {
            return Ok((replayed, None));
        }
        let report = request.report.unwrap_or_default();
        if !report.on_behalf_of.is_empty() {
            let reason = "is not for deliveries: dispatch cancels them as itself";
            return Err(Error::invalid(
                "report.on_behalf_of",
                "NOT_PERMITTED",
                reason,
            ));
        }
        let report = TaskReport {
            by,
            api_client_id: caller.id,
            courier_id: None,
            times: messages::device_times(Some(report)),
            remarks: Remarks::default(),
        };

        let public_url = self.config.public_url.clone();
        let writer = DeliveryWriter::new(self, store.time_zone.clone(), report);
        let write = self
            .idempotency
            .write_with(key, move |transaction| async move {
                let cancel = |delivery: &mut Delivery, now| delivery.cancel(writer.report.by, now);
                match writer.change(&transaction, store.id, id, cancel).await {
                    Ok(Some(changed)) => {
                        if changed.events.is_some() {
                            let audit = &caller.audit;
                            audit.record(&transaction, Some(store.id), &*name).await?;
                        }
                        let delivery = message(&caller, changed.delivery, &store, &public_url);
                        Ok((CommandResponse::of_delivery(delivery), changed.events))
                    }
                    Ok(None) => Err(Error::NotFound(name)),
                    // Stored, too: the states may permit a repetition of the command later.
                    Err(Error::Conflict(TASK_STATE, refusal)) => {
                        Ok((CommandResponse::refused(refusal), None))
                    }
                    Err(error) => Err(error),
                }
            });
        let (response, events) = write.await?;
        Ok((response, events.flatten()))
    }
}
