//! Images of tasks: uploaded by couriers and dispatch, read by shops too.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use domain::{
    api_client::Scope,
    id::{ApiClientId, ImageId, IncidentId},
    image::{Image, ImageFile, MAX_BYTES, MAX_IMAGES, Unacceptable},
    lifecycle::Refusal,
    store::Store,
    task::Task,
    violation::Violations,
};
use futures_util::{Stream, StreamExt as _, stream};
use proto::{GetImageResponse, UploadImageRequest, iri::Collection};
use storage::{images, incidents};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};
use tonic::{Request, Response, Status, Streaming};

use super::{
    Reply, Services,
    delivery_changes::{refused, time_of_change},
    tasks::{late::ReportedTask, reads_any_store},
};
use crate::{
    auth::caller::{Caller, Effect},
    call_limits::{Concurrency, Entered, stream_failed},
    error::Error,
    images::ImageFolder,
    messages::{self, timestamp},
};

/// How long a message of an upload may take to arrive.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(15);

/// Limit of the uploads of a client.
const MAX_UPLOADS_PER_CLIENT: usize = 4;

/// Limit of the files that are received and stored, each of which counts against the memory of a peer: those of a
/// gateway leave half of its share to other calls.
const MAX_RECEIVED: usize = 8;

/// How long an upload waits for its turn.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Limit of the files that are parsed, which takes the memory of several.
const MAX_PARSED: usize = 2;

/// The uploads whose callers may upload.
pub(crate) struct Uploads {
    of_clients: Arc<Concurrency<ApiClientId>>,
    received: Semaphore,
    parsed: Arc<Semaphore>,
}

/// One of its client's uploads whose file may be received; ends when dropped.
struct Upload<'a> {
    _of_client: Entered<ApiClientId>,
    _received: SemaphorePermit<'a>,
}

impl Uploads {
    pub(crate) fn new() -> Self {
        Self {
            of_clients: Concurrency::new(),
            received: Semaphore::new(MAX_RECEIVED),
            parsed: Arc::new(Semaphore::new(MAX_PARSED)),
        }
    }

    /// Waits for the turn of an upload. Fails if its client has too many, or if too many others are received.
    async fn begin(&self, client: ApiClientId) -> Result<Upload<'_>, Error> {
        let limit = MAX_UPLOADS_PER_CLIENT;
        let of_client = self.of_clients.enter(client, limit);
        let of_client = of_client.ok_or(Error::TooManyCalls { limit })?;
        match timeout(MAX_WAIT, self.received.acquire()).await {
            Ok(Ok(received)) => Ok(Upload {
                _of_client: of_client,
                _received: received,
            }),
            _ => Err(storage::Error::Overloaded.into()),
        }
    }

    /// Reads an image from a whole file.
    async fn parse(&self, content: Bytes) -> Result<ImageFile, Error> {
        let permit = Arc::clone(&self.parsed).acquire_owned().await;
        let read = tokio::task::spawn_blocking(move || {
            // Also kept if the call ends before.
            let _permit = permit;
            ImageFile::read(content)
        });
        // A file with which the parser cannot deal is no image either.
        let read = read.await.unwrap_or(Err(Unacceptable::NoImage));
        read.map_err(unacceptable)
    }
}

#[tonic::async_trait]
impl proto::images_server::Images for Services {
    type GetImageStream =
        std::pin::Pin<Box<dyn Stream<Item = Result<GetImageResponse, Status>> + Send>>;

    async fn upload_image(
        &self,
        request: Request<Streaming<UploadImageRequest>>,
    ) -> Reply<proto::Image> {
        let (caller, mut stream) = Caller::of(request)?;
        self.image_folder()?;
        let first = receive(&mut stream).await?;
        let worker = self.worker(&caller, Scope::Dispatch, first.report.as_ref())?;
        let (store, task) = self.find_parent(&first.parent).await?;
        let reported = self.reported_task(worker, &store, &task);
        let mut violations = Violations::new();
        let is_late = self.is_late(&reported, &task, &mut violations).await;
        let task_name = Collection::Tasks.name(task.id);
        is_late.map_err(|error| named_as(&first.parent, &task_name, error))?;
        Error::check(violations)?;
        // Only now: a caller that may not upload takes the place of no other.
        let _upload = self.uploads.begin(caller.id).await?;
        let content = receive_file(first, &mut stream).await?;
        let file = self.uploads.parse(content).await?;

        let zone = store.time_zone_name().to_owned();
        let (image, effect) = self.add_image(&caller, reported, store, task, file).await?;
        let uploaded = Response::new(message(&image, &zone));
        caller.audit_effect("UploadImage", &uploaded.get_ref().name, effect);
        Ok(uploaded)
    }

    async fn get_image(
        &self,
        request: Request<proto::GetImageRequest>,
    ) -> Reply<Self::GetImageStream> {
        let (caller, request) = Caller::of(request)?;
        let folder = self.image_folder()?;
        let (image, zone) = self.find_image(&caller, request.name).await?;
        let file = match folder.get(image.id).await {
            Err(object_store::Error::NotFound { .. }) => {
                // Unless it was erased since.
                let name = Collection::Images.name(image.id);
                self.find_image(&caller, name).await?;
                let message = format!("the file of the image {} is missing", image.id);
                return Err(Error::Bug(message).into());
            }
            file => file.map_err(Error::from)?,
        };
        let name = Collection::Images.name(image.id);
        self.record_read(&caller, Some(image.store_id), &name);
        let head = GetImageResponse {
            image: Some(message(&image, &zone)),
            content: Vec::new(),
        };
        let chunks = file.map(|chunk| match chunk {
            Ok(content) => Ok(GetImageResponse {
                image: None,
                content: content.into(),
            }),
            Err(error) => Err(Error::from(error).into()),
        });
        Ok(Response::new(Box::pin(
            stream::iter([Ok(head)]).chain(chunks),
        )))
    }
}

impl Services {
    /// The folder of images. Fails if the platform has none.
    fn image_folder(&self) -> Result<&ImageFolder, Error> {
        let not_kept = || {
            let message =
                "this platform keeps no images: its operator names a folder with --images";
            Error::Conflict("IMAGES_NOT_KEPT", message.to_owned())
        };
        self.images.as_deref().ok_or_else(not_kept)
    }

    /// The task that an image is for, or the task of the incident.
    async fn find_parent(&self, name: &str) -> Result<(Store, Task), Error> {
        let Some(id) = Collection::Incidents.id(name) else {
            return self.find_any_task(name).await;
        };
        let not_found = || Error::NotFound(name.to_owned());
        let found = incidents::find(self.storage.reader(), IncidentId(id)).await?;
        let task = Collection::Tasks.name(found.ok_or_else(not_found)?.task_id);
        let found = self.find_any_task(&task).await;
        found.map_err(|error| named_as(name, &task, error))
    }

    /// Stores an image of a task, unless the task has it. The file first: one without a row is deleted later.
    async fn add_image(
        &self,
        caller: &Caller,
        reported: ReportedTask,
        store: Store,
        task: Task,
        file: ImageFile,
    ) -> Result<(Image, Effect), Error> {
        let same = images::find_same(self.storage.reader(), store.id, task.id, file.hash);
        if let Some(same) = same.await? {
            return Ok((same, Effect::Unchanged));
        }
        let id = ImageId::new();
        let new = Image {
            id,
            store_id: store.id,
            task_id: task.id,
            content_type: file.content_type,
            size: u32::try_from(file.content.len()).unwrap_or(u32::MAX),
            hash: file.hash,
            created_at: self.clock.now(),
        };
        let (folder, audit) = (self.image_folder()?, caller.audit.clone());
        folder.put(id, file.content).await?;
        let write = self.storage.write(move |transaction| async move {
            let (delivery_id, kind) = (task.delivery_id, task.kind);
            let found = storage::deliveries::find_and_lock(&transaction, store.id, delivery_id);
            let missing = || Error::NotFound(Collection::Tasks.name(task.id));
            let mut delivery = found.await?.ok_or_else(missing)?;
            let has_task = reported.worker.has(delivery.task(kind));
            if !has_task && !reported.was_own(&transaction).await? {
                return Err(refused(Refusal::NotAssigned, &delivery, &store.time_zone));
            }
            let same = images::find_same(&transaction, store.id, task.id, new.hash);
            if let Some(same) = same.await? {
                return Ok(same);
            }
            if delivery.task(kind).images.len() >= MAX_IMAGES {
                let description = format!("must not be added to a task with {MAX_IMAGES} images");
                return Err(Error::invalid("content", "TOO_MANY", description));
            }
            let now = time_of_change(&delivery, new.created_at);
            let added = delivery.add_image(kind, id, now);
            added.map_err(|why| refused(why, &delivery, &store.time_zone))?;
            images::insert(&transaction, &delivery, kind, &new).await?;
            let name = Collection::Images.name(id);
            audit.record(&transaction, Some(store.id), name).await?;
            Ok(new)
        });
        let written: Result<Image, Error> = write.await;
        // Of a lost connection to the database, it is unknown whether the row was written.
        let is_unused = match &written {
            Ok(image) => image.id != id,
            Err(error) => !matches!(error, Error::Storage(_)),
        };
        if is_unused && let Err(error) = folder.delete(id).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, image.id = %id, "cannot delete the file of an upload");
        }
        let image = written?;
        if is_unused {
            return Ok((image, Effect::Unchanged));
        }
        // Brings the task to watchers.
        self.queue.streams.events_written.send_replace(());
        Ok((image, Effect::Changed))
    }

    /// An image of a task that the caller may read, and the time zone of the task's store.
    async fn find_image(&self, caller: &Caller, name: String) -> Result<(Image, String), Error> {
        let is_of_any_store = reads_any_store(caller);
        // Both show the tasks of a delivery.
        if !is_of_any_store && !caller.has(Scope::Deliveries) {
            caller.require(Scope::Tasks)?;
        }
        let id = ImageId(messages::id_in(Collection::Images, &name)?);
        let reader = self.storage.reader();
        if !is_of_any_store {
            let store = caller.store()?;
            let image = images::find(reader, store.id, id).await?;
            let zone = store.time_zone_name().to_owned();
            return Ok((image.ok_or(Error::NotFound(name))?, zone));
        }
        let Some(image) = images::find_of_any_store(reader, id).await? else {
            return Err(Error::NotFound(name));
        };
        let task = Collection::Tasks.name(image.task_id);
        match self.find_task_of_caller(caller, &task).await {
            Ok((store, _)) => Ok((image, store.time_zone_name().to_owned())),
            Err(Error::NotFound(_)) => Err(Error::NotFound(name)),
            Err(error) => Err(error),
        }
    }
}

/// An error that names a task, in the words of a caller that named it, or its incident, as the parent of an image.
fn named_as(parent: &str, task: &str, error: Error) -> Error {
    match error {
        Error::NotFound(name) if name == task => Error::NotFound(parent.to_owned()),
        error => error,
    }
}

/// Receives the rest of an upload.
async fn receive_file(
    first: UploadImageRequest,
    stream: &mut Streaming<UploadImageRequest>,
) -> Result<Bytes, Error> {
    // Allocated once: what is grown is copied, and takes up to three times its size.
    let (mut content, mut chunk) = (Vec::with_capacity(MAX_BYTES), first);
    loop {
        if content.len() + chunk.content.len() > MAX_BYTES {
            return Err(unacceptable(Unacceptable::TooLarge));
        }
        content.extend_from_slice(&chunk.content);
        if chunk.is_last {
            return Ok(content.into());
        }
        chunk = receive(stream).await?;
    }
}

fn unacceptable(why: Unacceptable) -> Error {
    Error::invalid("content", "INVALID_IMAGE", why.to_string())
}

async fn receive(stream: &mut Streaming<UploadImageRequest>) -> Result<UploadImageRequest, Error> {
    let incomplete = |reason| Error::invalid("content", "INCOMPLETE", reason);
    match timeout(MESSAGE_TIMEOUT, stream.message()).await {
        Ok(Ok(Some(message))) => Ok(message),
        Ok(Err(status)) => Err(stream_failed(
            &status,
            "the stream ended before its last chunk",
        )),
        Ok(Ok(None)) => Err(incomplete("the stream ended before its last chunk")),
        Err(_) => Err(incomplete("the stream stopped: no chunk arrived in time")),
    }
}

fn message(image: &Image, time_zone: &str) -> proto::Image {
    proto::Image {
        name: Collection::Images.name(image.id),
        task: Collection::Tasks.name(image.task_id),
        content_type: image.content_type.as_str().to_owned(),
        size_bytes: image.size,
        create_time: Some(timestamp(image.created_at)),
        time_zone: time_zone.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_has_a_share_of_the_uploads_and_others_wait_for_their_turn() {
        let uploads = Uploads::new();
        let [first, second, third] = [(); 3].map(|()| ApiClientId::new());
        let mut begun = Vec::new();
        for client in [first, second] {
            for _ in 0..MAX_UPLOADS_PER_CLIENT {
                begun.push(uploads.begin(client).await.unwrap());
            }
            let refused = uploads.begin(client).now_or_never().unwrap().map(drop);
            assert!(matches!(refused, Err(Error::TooManyCalls { .. })));
        }

        let refused = uploads.begin(third).await.map(drop);
        assert!(matches!(
            refused,
            Err(Error::Storage(storage::Error::Overloaded))
        ));
        let mut waiting = Box::pin(uploads.begin(third));
        assert!(waiting.as_mut().now_or_never().is_none());
        begun.pop();
        assert!(waiting.await.is_ok());
    }

    #[test]
    fn a_task_that_is_not_found_is_named_as_the_caller_named_it() {
        let named = |error| named_as("incidents/1", "tasks/1", error).to_string();

        let [task, courier] =
            ["tasks/1", "couriers/1"].map(|name| Error::NotFound(name.to_owned()));
        assert_eq!(named(task), "incidents/1 does not exist");
        assert_eq!(named(courier), "couriers/1 does not exist");
    }
}
