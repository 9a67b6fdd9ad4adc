//! Entity tags, `HEAD` and compressed responses.

use http::Method;
use proto::{AccessToken, GetImageResponse, Image, Task, Webhook, task};
use tonic::Status;

use crate::harness::{
    Client, Platform, Reply,
    samples::{ID, delivery, task},
};

fn task_path() -> String {
    format!("/api/tasks/{ID}")
}

async fn poll(platform: &Platform, headers: &[(&str, &str)], task: Task) -> Reply {
    platform.core.will_respond(task);
    let mut request = platform.client.request(Method::GET, &task_path());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    platform.client.send(request, "").await
}

fn vary(reply: &Reply) -> Vec<&str> {
    let values = reply.headers.get_all("vary").iter();
    values.map(|value| value.to_str().unwrap()).collect()
}

#[tokio::test]
async fn a_conditional_get_is_304_until_the_resource_changes() {
    let platform = Platform::start().await;
    let todo = task(task::Kind::Pickup);
    let done = Task {
        status: task::Status::Done.into(),
        ..todo.clone()
    };

    let first = poll(&platform, &[], todo.clone()).await;
    let tag = first.header("etag").unwrap();
    let same = poll(&platform, &[("if-none-match", tag)], todo).await;
    let changed = poll(&platform, &[("if-none-match", tag)], done).await;

    assert!(tag.starts_with("W/\""), "{tag}");
    assert_eq!(first.header("cache-control"), Some("private, no-cache"));
    assert_eq!(same.status, 304);
    assert!(same.body.is_empty());
    assert_eq!(same.header("content-type"), None);
    assert_eq!(vary(&same), ["accept", "accept-encoding"]);
    for name in ["etag", "cache-control", "link"] {
        assert_eq!(same.header(name), first.header(name), "{name}");
    }
    assert_eq!(
        (changed.status.as_u16(), &changed.json()["status"]),
        (200, &"DONE".into())
    );
    assert_ne!(changed.header("etag"), Some(tag));
}

async fn get_image(platform: &Platform, known: &str, size_bytes: u32, file: &[&str]) -> Reply {
    let head = GetImageResponse {
        image: Some(Image {
            name: format!("images/{ID}"),
            content_type: "image/png".to_owned(),
            size_bytes,
            ..Image::default()
        }),
        ..GetImageResponse::default()
    };
    let chunks = file.iter().map(|content| GetImageResponse {
        image: None,
        content: content.as_bytes().to_vec(),
    });
    let mut messages: Vec<_> = [head].into_iter().chain(chunks).map(Ok).collect();
    if file.is_empty() {
        messages.push(Err(Status::internal("the file is read")));
    }
    platform.core.will_respond(messages);
    let path = format!("/api/images/{ID}");
    let request = platform.client.request(Method::GET, &path);
    let request = request.header("if-none-match", known);
    platform.client.send(request, "").await
}

#[tokio::test]
async fn an_image_that_the_client_has_is_304_before_its_file_is_read() {
    let platform = Platform::start().await;

    let first = get_image(&platform, "\"other\"", 6, &["pix", "els"]).await;
    let tag = first.header("etag").unwrap();
    let same = get_image(&platform, tag, 6, &[]).await;
    let unreadable = get_image(&platform, "\"other\"", 6, &[]).await;
    let cut_off = get_image(&platform, "\"other\"", 6, &["pix"]).await;

    assert_eq!(
        (first.status.as_u16(), &first.body[..]),
        (200, &b"pixels"[..])
    );
    assert_eq!(first.header("content-type"), Some("image/png"));
    assert_eq!((same.status.as_u16(), &same.body[..]), (304, &b""[..]));
    for name in ["etag", "cache-control"] {
        assert_eq!(same.header(name), first.header(name), "{name}");
    }
    assert_eq!(first.header("cache-control"), Some("private, no-cache"));
    for failed in [unreadable, cut_off] {
        assert_eq!(failed.status, 500);
    }
}

#[tokio::test]
async fn an_image_for_which_there_is_no_memory_is_503_before_its_file_is_read() {
    let platform = Platform::start().await;

    let refused = get_image(&platform, "\"other\"", 64 << 20, &[]).await;

    assert_eq!(refused.status, 503);
    assert_eq!(refused.error()["code"], "overloaded");
}

#[tokio::test]
async fn an_etag_belongs_to_one_media_type_of_a_resource() {
    let platform = Platform::start().await;
    let json = ("accept", "application/json");

    let json_ld = poll(&platform, &[], task(task::Kind::Pickup)).await;
    let tag = json_ld.header("etag").unwrap();
    let other = poll(
        &platform,
        &[json, ("if-none-match", tag)],
        task(task::Kind::Pickup),
    )
    .await;

    assert_eq!(other.status, 200);
    assert_ne!(other.header("etag"), Some(tag));
}

#[tokio::test]
async fn errors_and_secrets_have_no_etag() {
    let platform = Platform::start().await;
    platform.core.will_respond(AccessToken::default());
    platform.core.will_respond(Webhook {
        name: format!("webhooks/{ID}"),
        secret: "secret".to_owned(),
        ..Webhook::default()
    });

    let form = "grant_type=client_credentials&client_id=a&client_secret=b";
    let token = platform.client.post_form("/oauth2/token", form, None).await;
    let webhook = platform.client.post("/api/webhooks", "{}").await;
    let missing = platform.client.get("/nowhere").await;

    for (reply, status) in [(token, 200), (webhook, 201), (missing, 404)] {
        assert_eq!(reply.status, status);
        assert_eq!(reply.header("etag"), None);
    }
}

#[tokio::test]
async fn a_large_response_is_compressed_if_the_client_accepts_gzip() {
    let platform = Platform::start().await;
    let get = |encoding: &'static str| {
        let request = platform.client.request(Method::GET, "/api/docs.jsonld");
        platform
            .client
            .send(request.header("accept-encoding", encoding), "")
    };

    let plain = get("identity").await;
    for accepted in ["gzip", "br, gzip;q=0.5"] {
        let reply = get(accepted).await;

        assert_eq!(reply.header("content-encoding"), Some("gzip"), "{accepted}");
        assert_eq!(vary(&reply), ["accept", "accept-encoding"]);
        assert!(reply.body.starts_with(&[0x1f, 0x8b]), "{accepted}");
        assert!(reply.body.len() * 4 < plain.body.len());
        assert_eq!(reply.header("etag"), plain.header("etag"));
    }
    for not_accepted in ["br", "gzip;q=0", "identity;q=0", "*"] {
        let reply = get(not_accepted).await;

        assert_eq!(reply.status, 200, "{not_accepted}");
        assert_eq!(reply.header("content-encoding"), None);
        assert_eq!(vary(&reply), ["accept", "accept-encoding"]);
        assert_eq!(reply.body, plain.body);
    }
}

#[tokio::test]
async fn small_and_secret_responses_are_not_compressed() {
    let platform = Platform::start().await;
    platform.core.will_respond(Webhook {
        name: format!("webhooks/{ID}"),
        url: format!("https://shop.example/{}", "x".repeat(3000)),
        secret: "secret".to_owned(),
        ..Webhook::default()
    });
    let post = platform
        .client
        .request(Method::POST, "/api/webhooks")
        .header("content-type", "application/ld+json")
        .header("accept-encoding", "gzip");
    let get = platform
        .client
        .request(Method::GET, "/api")
        .header("accept-encoding", "gzip");

    let secret = platform.client.send(post, "{}").await;
    let small = platform.client.send(get, "").await;

    assert_eq!(secret.status, 201);
    assert_eq!(secret.header("content-encoding"), None);
    assert_eq!(small.header("content-encoding"), None);
}

#[tokio::test]
async fn head_has_the_headers_of_get_without_its_body() {
    let platform = Platform::start().await;
    for client in [
        Client::new(platform.gateway.addr),
        Client::http2(platform.gateway.addr),
    ] {
        for encoding in ["identity", "gzip"] {
            let send = async |method| {
                platform.core.will_respond(delivery());
                let path = format!("/api/deliveries/{ID}");
                let request = client
                    .request(method, &path)
                    .header("accept-encoding", encoding);
                client.send(request, "").await
            };
            let get = send(Method::GET).await;
            let head = send(Method::HEAD).await;

            assert_eq!(head.status, 200);
            assert!(head.body.is_empty());
            for name in ["content-type", "content-encoding", "etag", "cache-control"] {
                assert_eq!(head.header(name), get.header(name), "{name}, {encoding}");
            }
            assert_eq!(vary(&head), vary(&get));
            let length = get.body.len().to_string();
            assert_eq!(head.header("content-length"), Some(length.as_str()));
        }
    }
}
