//! Images of tasks: `POST /api/task_images` and `POST /api/incident_images`, which take forms, and `GET /api/images/{id}`.

use std::{convert::Infallible, mem};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Response, header::CONTENT_TYPE};
use multer::Multipart;
use proto::{
    GetImageRequest, UploadImageRequest,
    images_client::ImagesClient,
    iri::{self, Collection},
};
use serde::Serialize;

use crate::{
    core_pool::rpc,
    error::Error,
    representation::{
        json_ld::{self, Node, StoreTimeZone},
        response_body,
    },
    request::{HandlerResult, Request},
    violations::ViolationCollector,
};

/// The header that names what an image is for, as the courier's app sends it: IRIs separated by `;`.
const ATTACH_TO: &str = "X-Attach-To";

/// The member of the form that has the image.
const FILE: &str = "file";

/// Limit of what one upload is for.
const MAX_PARENTS: usize = 10;

/// In bytes.
const CHUNK: usize = 256 * 1024;

/// An image, without its file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Image {
    #[serde(flatten)]
    node: Node,
    task: String,
    content_type: String,
    size: u32,
    created_at: String,
}

/// An image for a task or an incident.
#[derive(Clone)]
struct Upload {
    parent: String,
    file: Bytes,
}

impl Upload {
    fn chunks(self) -> impl Iterator<Item = UploadImageRequest> {
        let Self { parent, mut file } = self;
        // Without content: an upload may wait for its turn after this message.
        let first = UploadImageRequest {
            parent,
            is_last: file.is_empty(),
            ..UploadImageRequest::default()
        };
        let chunks = std::iter::from_fn(move || {
            let content = file.split_to(CHUNK.min(file.len()));
            (!content.is_empty()).then(|| UploadImageRequest {
                content: content.into(),
                is_last: file.is_empty(),
                ..UploadImageRequest::default()
            })
        });
        std::iter::once(first).chain(chunks)
    }
}

/// `POST /api/task_images`
pub(crate) async fn upload_of_tasks(request: Request) -> HandlerResult {
    upload(request, Collection::Tasks).await
}

/// `POST /api/incident_images`
pub(crate) async fn upload_of_incidents(request: Request) -> HandlerResult {
    upload(request, Collection::Incidents).await
}

/// Uploads an image for each of what the header names. Repeating it is safe: the same image of a task is not added again.
async fn upload(mut request: Request, parents: Collection) -> HandlerResult {
    let body = mem::replace(&mut request.body, Ok(Bytes::new()))?;
    let violations = &mut request.violations;
    violations.add_alias("content".to_owned(), FILE);
    let parents = read_parents(&request.parts.headers, parents, violations);
    let file = read_file(&request.parts.headers, body, violations).await;
    violations.check()?;
    let mut first = None;
    for parent in parents {
        let file = file.clone().unwrap_or_default();
        let send = request.send(Upload { parent, file }, true, async |core, message| {
            let message = message.map(|upload: Upload| stream::iter(upload.chunks()));
            ImagesClient::new(core).upload_image(message).await
        });
        let image = send.await?.into_inner();
        first.get_or_insert(image);
    }
    let image = first.ok_or_else(|| Error::incomplete("an image"))?;
    let url = request.url_of(&image.name);
    let zone = StoreTimeZone::named(&image.time_zone);
    let image = Image {
        node: Node::new("Image", Collection::Images, &image.name),
        task: iri::of(&image.task),
        content_type: image.content_type,
        size: image.size_bytes,
        created_at: zone.write(image.create_time.as_ref())?,
    };
    json_ld::created(&url, "/api/contexts/Image", &image)
}

/// The names of what an image is for.
fn read_parents(
    headers: &HeaderMap,
    collection: Collection,
    violations: &mut ViolationCollector,
) -> Vec<String> {
    let values = headers.get_all(ATTACH_TO).iter();
    let values = values.map(|value| value.to_str().unwrap_or("?"));
    let parents = values.flat_map(|value| value.split(';').map(str::trim));
    let mut names: Vec<String> = Vec::new();
    for parent in parents.filter(|parent| !parent.is_empty()) {
        let name = iri::name(parent);
        if collection.last_segment(name).is_none() {
            let example = iri::of(&collection.name("<id>"));
            let description = format!("must be IRIs such as {example}, separated by semicolons");
            violations.add_verbatim(ATTACH_TO, "WRONG_TYPE", description);
            return Vec::new();
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() {
        violations.add_verbatim(ATTACH_TO, "REQUIRED", "is required");
    }
    if names.len() > MAX_PARENTS {
        let description = format!("must be at most {MAX_PARENTS} tasks, not {}", names.len());
        violations.add_verbatim(ATTACH_TO, "TOO_MANY", description);
    }
    names
}

/// The file in a form.
async fn read_file(
    headers: &HeaderMap,
    body: Bytes,
    violations: &mut ViolationCollector,
) -> Option<Bytes> {
    let media_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let boundary = media_type.and_then(|media_type| multer::parse_boundary(media_type).ok());
    let found = match boundary {
        Some(boundary) => find_file(body, boundary).await,
        None => Ok(None),
    };
    if let Ok(Some(file)) = found {
        return Some(file);
    }
    let description = "is required, in a whole form of the type multipart/form-data";
    violations.add(FILE, "REQUIRED", description);
    None
}

async fn find_file(body: Bytes, boundary: String) -> Result<Option<Bytes>, multer::Error> {
    let body = stream::iter([Ok::<_, Infallible>(body)]);
    let mut form = Multipart::new(body, boundary);
    let mut file = None;
    // All of it: what is cut off in the middle is no form.
    while let Some(field) = form.next_field().await? {
        if field.name() == Some(FILE) && file.is_none() {
            file = Some(field.bytes().await?);
        }
    }
    Ok(file)
}

/// `GET /api/images/{id}`
pub(crate) async fn get(request: Request) -> HandlerResult {
    let name = Collection::Images.name(&request.parameter);
    let mut stream = request
        .call(GetImageRequest { name }, rpc!(ImagesClient.get_image))
        .await?;
    let first = stream.message().await?.unwrap_or_default();
    let image = first.image.ok_or_else(|| Error::incomplete("an image"))?;
    let content_type = HeaderValue::from_str(&image.content_type).map_err(Error::internal)?;
    let mut response = Response::new(Bytes::new());
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response_body::identify(&mut response, &image.name);
    if response_body::is_known(request.headers(), &response) {
        return Ok(response);
    }
    let size = usize::try_from(image.size_bytes).map_err(Error::internal)?;
    if !request.memory.reserve_response(size) {
        return Err(Error::overloaded());
    }
    let mut content = BytesMut::with_capacity(size);
    content.extend_from_slice(&first.content);
    while let Some(message) = stream.message().await? {
        content.extend_from_slice(&message.content);
    }
    if content.len() != size {
        return Err(Error::incomplete("the whole file of an image"));
    }
    *response.body_mut() = content.freeze();
    Ok(response)
}
