//! Couriers and their lists, for dispatch.

mod lists;
mod requests;

use std::iter;

use domain::{
    api_client::Scope, courier::Courier, id::CourierId, telephone, violation::Violations,
};
use proto::iri::Collection;
use storage::pages::{Cursor, Start};
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{
    auth::caller::Caller,
    error::Error,
    idempotency::begin_or_replay,
    messages::{self, pages, timestamp},
    planning::validation,
};

#[tonic::async_trait]
impl proto::couriers_server::Couriers for Services {
    async fn create_courier(
        &self,
        request: Request<proto::CreateCourierRequest>,
    ) -> Reply<proto::Courier> {
        let (caller, request) = Caller::with_scope(request, Scope::Dispatch)?;
        let created = self.insert_courier(&caller, request).await?;
        caller.audit("CreateCourier", &created.get_ref().name, &created);
        Ok(created)
    }

    async fn get_courier(
        &self,
        request: Request<proto::GetCourierRequest>,
    ) -> Reply<proto::Courier> {
        let (_, request) = Caller::with_scope(request, Scope::DispatchRead)?;
        Ok(Response::new(message(
            &self.find_courier(&request.name).await?,
        )))
    }

    async fn list_couriers(
        &self,
        request: Request<proto::ListCouriersRequest>,
    ) -> Reply<proto::ListCouriersResponse> {
        let (_, request) = Caller::with_scope(request, Scope::DispatchRead)?;
        Ok(Response::new(self.read_couriers(&request).await?))
    }

    async fn update_courier(
        &self,
        request: Request<proto::UpdateCourierRequest>,
    ) -> Reply<proto::Courier> {
        let (caller, request) = Caller::with_scope(request, Scope::Dispatch)?;
        let updated = self.change_courier(&caller, request).await?;
        caller.audit("UpdateCourier", &updated.get_ref().name, &updated);
        Ok(updated)
    }

    async fn list_courier_lists(
        &self,
        request: Request<proto::ListCourierListsRequest>,
    ) -> Reply<proto::ListCourierListsResponse> {
        let (_, request) = Caller::with_scope(request, Scope::DispatchRead)?;
        Ok(Response::new(self.read_lists(&request.day).await?))
    }

    async fn set_courier_lists(
        &self,
        request: Request<proto::SetCourierListsRequest>,
    ) -> Reply<proto::SetCourierListsResponse> {
        let (caller, request) = Caller::with_scope(request, Scope::Dispatch)?;
        let couriers = request.lists.iter().map(|list| list.courier.clone());
        let changed: Vec<_> = iter::once(request.day.clone()).chain(couriers).collect();
        let set = self.replace_lists(&caller, request).await?;
        caller.audit("SetCourierLists", &changed.join(" "), &set);
        Ok(set)
    }

    async fn assign_tasks(
        &self,
        request: Request<proto::AssignTasksRequest>,
    ) -> Reply<proto::AssignTasksResponse> {
        let (caller, request) = Caller::with_scope(request, Scope::Dispatch)?;
        let courier = Some(request.courier.clone()).filter(|courier| !courier.is_empty());
        let tasks = request.moves.iter().map(|of| of.task.clone());
        let changed: Vec<_> = courier.into_iter().chain(tasks).collect();
        let assigned = self.move_tasks(&caller, request).await?;
        caller.audit("AssignTasks", &changed.join(" "), &assigned);
        Ok(assigned)
    }
}

impl Services {
    async fn read_couriers(
        &self,
        request: &proto::ListCouriersRequest,
    ) -> Result<proto::ListCouriersResponse, Error> {
        let mut violations = Violations::new();
        let size = request.page_size;
        let size = size.map(|size| pages::read_size(Some(size), &mut violations));
        let after = pages::read_next(&request.page_token, &mut violations);
        Error::check(violations)?;
        let reader = self.storage.reader();
        let after = after.map(|after| CourierId(after.id));
        let page = storage::couriers::list(reader, request.disabled, after, size);
        let (couriers, has_more) = page.await?;
        let cursor = |last: &Courier| Cursor {
            created_at: last.created_at,
            id: last.id.0,
        };
        let last = couriers.last().filter(|_| has_more).map(cursor);
        let next_page_token = last.map(|last| pages::encode(Start::NewerThan(last)));
        Ok(proto::ListCouriersResponse {
            couriers: couriers.iter().map(message).collect(),
            next_page_token: next_page_token.unwrap_or_default(),
        })
    }

    pub(super) async fn find_courier(&self, name: &str) -> Result<Courier, Error> {
        let find = |id| storage::couriers::find(self.storage.reader(), CourierId(id));
        messages::find_resource(Collection::Couriers, name, find).await
    }

    /// The only enabled courier with a display name.
    async fn find_named_courier(&self, display_name: &str) -> Result<Courier, Error> {
        let named = storage::couriers::named(self.storage.reader(), display_name);
        let mut named = named.await?.into_iter();
        let description = match (named.next(), named.next()) {
            (Some(courier), None) => return Ok(courier),
            (None, _) => "no courier has this name",
            (Some(_), Some(_)) => "several couriers have this name: write couriers/<id>",
        };
        let field = "courier_display_name";
        Err(Error::invalid(field, "UNKNOWN_COURIER", description))
    }

    async fn insert_courier(
        &self,
        caller: &Caller,
        request: proto::CreateCourierRequest,
    ) -> Result<Response<proto::Courier>, Error> {
        let idempotency = request.idempotency;
        let request_key = begin_or_replay!(self, caller, "CreateCourier", "", idempotency);
        let mut violations = Violations::new();
        let display_name =
            validation::required_name("display_name", &request.display_name, &mut violations);
        let telephone = self.read_telephone(&request.telephone, &mut violations);
        Error::check(violations)?;
        let courier = Courier {
            id: CourierId::new(),
            display_name,
            telephone,
            created_at: self.clock.now(),
            disabled_at: None,
        };
        let audit = caller.audit.clone();
        self.idempotency
            .write(request_key, move |transaction| async move {
                storage::couriers::insert(&transaction, &courier).await?;
                let name = Collection::Couriers.name(courier.id);
                audit.record(&transaction, None, name).await?;
                Ok(message(&courier))
            })
            .await
    }

    async fn change_courier(
        &self,
        caller: &Caller,
        request: proto::UpdateCourierRequest,
    ) -> Result<Response<proto::Courier>, Error> {
        let (name, idempotency) = (&request.name, request.idempotency);
        let request_key = begin_or_replay!(self, caller, "UpdateCourier", name, idempotency);
        let id = CourierId(messages::id_in(Collection::Couriers, name)?);
        let mut violations = Violations::new();
        let display_name = request
            .display_name
            .map(|name| validation::required_name("display_name", &name, &mut violations));
        let telephone = request
            .telephone
            .map(|number| self.read_telephone(&number, &mut violations));
        Error::check(violations)?;
        let (is_disabled, now) = (request.disabled, self.clock.now());
        let audit = caller.audit.clone();
        let changed = self
            .idempotency
            .write(request_key, move |transaction| async move {
                let found = storage::couriers::find_and_lock(&transaction, id).await?;
                let missing = || Error::NotFound(Collection::Couriers.name(id));
                let mut courier = found.ok_or_else(missing)?;
                courier.display_name = display_name.unwrap_or(courier.display_name);
                courier.telephone = telephone.unwrap_or(courier.telephone);
                courier.disabled_at = match is_disabled {
                    Some(true) => courier.disabled_at.or(Some(now)),
                    Some(false) => None,
                    None => courier.disabled_at,
                };
                storage::couriers::update(&transaction, &courier).await?;
                let name = Collection::Couriers.name(id);
                audit.record(&transaction, None, name).await?;
                Ok(message(&courier))
            })
            .await;
        // The tokens of a disabled courier end. Even if it failed: it may be committed.
        self.authenticator.invalidate();
        changed
    }

    fn read_telephone(&self, number: &str, violations: &mut Violations) -> Option<String> {
        let parsed = telephone::parse(number, self.config.platform.country.as_str());
        let parsed = violations.check("telephone", "INVALID_TELEPHONE", parsed);
        parsed.flatten()
    }
}

fn message(courier: &Courier) -> proto::Courier {
    proto::Courier {
        name: Collection::Couriers.name(courier.id),
        display_name: courier.display_name.clone(),
        telephone: courier.telephone.clone().unwrap_or_default(),
        create_time: Some(timestamp(courier.created_at)),
        disable_time: courier.disabled_at.map(timestamp),
    }
}
