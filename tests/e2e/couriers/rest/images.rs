//! `POST /api/task_images` and `/api/incident_images`, and `GET /api/images/{id}`.

use hyper::{Method, header::CONTENT_TYPE};
use serde_json::json;

use super::{Scene, phone, read};
use crate::harness::{
    ApiClient, Mismatches, Platform, Response, UNKNOWN_ID,
    assertions::json_ld,
    image::{FORM, form, jpeg},
    iri,
};

async fn upload(client: &ApiClient, path: &str, attach_to: &str, body: Vec<u8>) -> Response {
    let mut request = client
        .request(Method::POST, path)
        .header("x-attach-to", attach_to);
    let headers = request.headers_mut().unwrap();
    headers.insert(CONTENT_TYPE, FORM.parse().unwrap());
    client.send(request, body).await
}

on_both_databases! {
    async fn a_phone_uploads_an_image_for_several_tasks_and_the_shop_gets_it(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let [pickup, dropoff] = [&scene.order.pickup, &scene.order.dropoff].map(|task| format!("/api/{task}"));
        let body = form(&jpeg("parcel", "at Zoé's"));
        let attach_to = format!("{pickup};{dropoff}");

        let created = upload(&scene.phone, "/api/task_images", &attach_to, body.clone()).await;

        let location = created.header("location").to_owned();
        let image = json_ld(&created, 201);
        let stored = jpeg("parcel", "");
        let expected = json!({
            "@context": "/api/contexts/Image",
            "@id": iri(&image),
            "@type": "Image",
            "id": iri(&image).strip_prefix("/api/images/"),
            "task": pickup,
            "contentType": "image/jpeg",
            "size": stored.len(),
            "createdAt": "2020-04-02T11:00:00+02:00",
        });
        assert_eq!(image, expected);
        assert!(location.ends_with(iri(&image)), "{location}");
        // As the app does until it has a response.
        let again = upload(&scene.phone, "/api/task_images", &attach_to, body).await;
        assert_eq!(json_ld(&again, 201), image);
        for client in [&scene.shop, &scene.desk, &scene.phone] {
            assert_eq!(read(client, &scene.order.pickup).await["images"], json!([iri(&image)]));
            let images = &read(client, &scene.order.dropoff).await["images"];
            for image in [iri(&image), images[0].as_str().unwrap()] {
                let file = client.get(image).await;
                assert_eq!((file.status, &file.body[..]), (200, &stored[..]));
                let names = ["content-type", "cache-control", "x-content-type-options", "content-encoding"];
                let headers = names.map(|name| file.header(name));
                assert_eq!(headers, ["image/jpeg", "private, no-cache", "nosniff", ""]);
            }
        }
        let report = json!({ "task": dropoff, "description": "Wet" });
        let incident = json_ld(&scene.phone.post("/api/incidents", report).await, 200);
        let wet = form(&jpeg("wet", ""));
        let image = upload(&scene.phone, "/api/incident_images", iri(&incident), wet).await;
        assert_eq!(json_ld(&image, 201)["task"], dropoff);
        assert_eq!(read(&scene.shop, &scene.order.dropoff).await["images"].as_array().unwrap().len(), 2);
    }

    async fn what_is_wrong_in_an_upload_is_reported_at_once_and_nothing_is_stored(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let ben = scene.board.courier("Ben").await;
        let of_ben = phone(platform, &ben).await;
        let task = format!("/api/{}", scene.order.pickup);
        let image = form(&jpeg("parcel", ""));
        let cut_off = image[..image.len() - 10].to_vec();
        let many = (0..11).map(|number| format!("/api/tasks/{number}")).collect::<Vec<_>>().join(";");
        let incident = format!("/api/incidents/{UNKNOWN_ID}");
        let mut mismatches = Mismatches::default();

        for (case, attach_to, body, paths) in [
            ("nothing", "", Vec::new(), &["X-Attach-To", "file"][..]),
            ("a form that is cut off", &task, cut_off, &["file"]),
            ("no form", &task, b"{}".to_vec(), &["file"]),
            ("too many tasks", &many, image.clone(), &["X-Attach-To"]),
            ("an incident", &incident, image.clone(), &["X-Attach-To"]),
            ("no image", &task, form(b"GIF89a"), &["file"]),
            ("a large file", &task, form(&vec![0xff; 5_000_001]), &["file"]),
        ] {
            let response = upload(&scene.phone, "/api/task_images", attach_to, body).await;
            mismatches.check_violations(case, &response, paths);
        }
        let unknown = format!("/api/tasks/{UNKNOWN_ID}");
        for (case, client, attach_to, body, status) in [
            ("another courier", &of_ben, &task, image.clone(), 404),
            ("an unknown task", &scene.desk, &unknown, image.clone(), 404),
            ("a shop", &scene.shop, &task, image.clone(), 403),
            ("a larger body", &scene.phone, &task, vec![0; (6 << 20) + 1], 413),
        ] {
            let response = upload(client, "/api/task_images", attach_to, body).await;
            mismatches.check_error(case, &response, status);
        }
        let unknown = scene.shop.get(&format!("/api/images/{UNKNOWN_ID}")).await;
        mismatches.check_error("an unknown image", &unknown, 404);

        mismatches.assert_none();
        assert_eq!(read(&scene.desk, &scene.order.pickup).await.get("images"), None);
        assert_eq!(platform.image_files(), 0);
    }
}
