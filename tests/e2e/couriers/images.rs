//! Images of tasks over gRPC: uploaded by couriers and dispatch, read by all who read the task.

use std::time::Duration;

use futures_util::stream;
use jiff::SignedDuration;
use proto::{GetImageRequest, Image, Report, ReportIncidentRequest, UploadImageRequest};
use serde_json::json;
use tonic::{Code, Status};

use super::{
    Desk, Order, TODAY, assert_refused, assert_unknown, assert_violations, now, on, orders,
    phone::phone, watching::first,
};
use crate::harness::{Platform, UNKNOWN_ID, eventually, grpc, image::jpeg, iri};

/// The chunks of an image.
fn chunks(parent: &str, content: &[u8]) -> Vec<UploadImageRequest> {
    let mut chunks: Vec<_> = content
        .chunks(7)
        .map(|content| UploadImageRequest {
            content: content.to_vec(),
            ..UploadImageRequest::default()
        })
        .collect();
    chunks.push(UploadImageRequest {
        is_last: true,
        ..UploadImageRequest::default()
    });
    parent.clone_into(&mut chunks[0].parent);
    chunks
}

impl Desk {
    async fn send_image(&self, chunks: Vec<UploadImageRequest>) -> Result<Image, Status> {
        let request = grpc::with_token(&self.token, stream::iter(chunks));
        Ok(self
            .images
            .clone()
            .upload_image(request)
            .await?
            .into_inner())
    }

    async fn upload(&self, parent: &str, content: &[u8]) -> Result<Image, Status> {
        self.send_image(chunks(parent, content)).await
    }

    /// The image and its file.
    async fn read_image(&self, name: &str) -> Result<(Image, Vec<u8>), Status> {
        let name = name.to_owned();
        let request = grpc::with_token(&self.token, GetImageRequest { name });
        let mut stream = self.images.clone().get_image(request).await?.into_inner();
        let head = stream.message().await?.unwrap();
        let (image, mut content) = (head.image.unwrap(), head.content);
        while let Some(message) = stream.message().await? {
            assert_eq!(message.image, None);
            content.extend(message.content);
        }
        Ok((image, content))
    }
}

on_both_databases! {
    async fn an_image_loses_its_metadata_and_is_read_by_all_who_read_the_task(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let phone = phone(platform, &ada).await;
        let [order]: [Order; 1] = orders(&client).await;
        desk.assign(&[&order.pickup], "", &ada).await;
        let mut watched = desk.watch(None, &on(TODAY)).await.unwrap();
        first(&mut watched).await;
        platform.advance(SignedDuration::from_mins(1));

        let uploaded = phone.upload(&order.pickup, &jpeg("parcel", "at Zoé's")).await.unwrap();

        let stored = jpeg("parcel", "");
        let expected = Image {
            name: uploaded.name.clone(),
            task: order.pickup.clone(),
            content_type: "image/jpeg".to_owned(),
            size_bytes: stored.len().try_into().unwrap(),
            create_time: now(platform),
            time_zone: "Europe/Paris".to_owned(),
        };
        assert_eq!(uploaded, expected);
        let shop = Desk::with(platform, &platform.demo_client, "tasks").await;
        let shop_of_deliveries = Desk::with(platform, &platform.demo_client, "deliveries").await;
        let program = Desk::with(platform, &platform.operator_client, "tasks:all").await;
        for reader in [&desk, &phone, &shop, &shop_of_deliveries, &program] {
            let read = reader.read_image(&uploaded.name).await.unwrap();
            assert_eq!(read, (expected.clone(), stored.clone()));
        }
        for reader in [&desk, &phone, &shop, &program] {
            let task = reader.task(&order.pickup).await;
            assert_eq!((task.images, task.update_time), (vec![uploaded.name.clone()], now(platform)));
            assert_eq!(reader.task(&order.dropoff).await.images, [""; 0]);
        }
        let has_image = |task: &proto::Task| task.images == [uploaded.name.clone()];
        while !first(&mut watched).await.tasks.iter().any(has_image) {}
        let listed = client.get("/api/deliveries").await.expect(200);
        let images = &listed["hydra:member"][0]["pickup"]["images"];
        assert_eq!(*images, json!([format!("/api/{}", uploaded.name)]));
    }

    async fn an_image_of_an_incident_is_one_of_its_task(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        let report = ReportIncidentRequest {
            task: order.dropoff.clone(),
            description: "Wet".to_owned(),
            ..ReportIncidentRequest::default()
        };
        let incident = desk.report_incident(report).await.unwrap().name;

        let uploaded = desk.upload(&incident, &jpeg("wet", "")).await.unwrap();

        assert_eq!(uploaded.task, order.dropoff);
        assert_eq!(desk.task(&order.dropoff).await.images, [uploaded.name]);
        let unknown = format!("incidents/{UNKNOWN_ID}");
        let ben = desk.courier("Ben").await;
        let of_ben = phone(platform, &ben).await;
        for (uploader, parent) in [(&desk, &unknown), (&of_ben, &incident)] {
            let refused = uploader.upload(parent, &jpeg("door", "")).await.unwrap_err();
            assert_unknown(&refused, parent);
        }
    }

    async fn the_same_image_of_a_task_is_stored_once(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        let (image, again) = (jpeg("parcel", "at noon"), jpeg("parcel", "at one"));

        let (first, second) = tokio::join!(
            desk.upload(&order.pickup, &image),
            desk.upload(&order.pickup, &again),
        );

        let first = first.unwrap();
        assert_eq!(second.unwrap(), first);
        platform.advance(SignedDuration::from_mins(1));
        assert_eq!(desk.upload(&order.pickup, &image).await.unwrap(), first);
        let other = desk.upload(&order.pickup, &jpeg("door", "")).await.unwrap();
        let of_other_task = desk.upload(&order.dropoff, &image).await.unwrap();
        assert_eq!(desk.task(&order.pickup).await.images, [first.name, other.name]);
        assert_eq!(desk.task(&order.dropoff).await.images, [of_other_task.name]);
        assert_eq!(platform.image_files(), 3);
    }

    async fn only_dispatch_and_the_courier_of_a_task_upload_and_others_do_not_read(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let credentials = platform.operator().await.create_courier_client(&ada).await;
        let of_ada = Desk::with(platform, &credentials, "courier").await;
        let of_ben = phone(platform, &ben).await;
        let [order, unassigned]: [Order; 2] = orders(&client).await;
        desk.assign(&[&order.pickup], "", &ada).await;
        let (image, unknown) = (jpeg("parcel", ""), format!("tasks/{UNKNOWN_ID}"));
        let uploaded = of_ada.upload(&order.pickup, &image).await.unwrap();

        for (uploader, task) in [
            (&of_ben, &order.pickup),
            (&of_ada, &unassigned.pickup),
            (&of_ada, &unknown),
            (&desk, &unknown),
        ] {
            assert_unknown(&uploader.upload(task, &image).await.unwrap_err(), task);
        }
        let shop = Desk::with(platform, &platform.demo_client, "tasks").await;
        let refused = shop.upload(&order.pickup, &image).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        let operator = platform.operator().await;
        let other_store = operator.create_store("Another shop").await;
        let other_shop = operator.create_client(&other_store, &["tasks"]).await;
        let other_shop = Desk::with(platform, &other_shop, "tasks").await;
        for reader in [&of_ben, &other_shop] {
            let refused = reader.read_image(&uploaded.name).await.unwrap_err();
            assert_unknown(&refused, &uploaded.name);
        }
        let unknown = format!("images/{UNKNOWN_ID}");
        for reader in [&desk, &shop] {
            assert_unknown(&reader.read_image(&unknown).await.unwrap_err(), &unknown);
        }
        // Late, and then not even that.
        desk.assign(&[&order.pickup], &ada, &ben).await;
        of_ada.upload(&order.pickup, &jpeg("door", "")).await.unwrap();
        assert_unknown(&of_ada.read_image(&uploaded.name).await.unwrap_err(), &uploaded.name);
        let mut for_ada = chunks(&order.pickup, &image);
        for_ada[0].report = Some(Report { on_behalf_of: ada.clone(), ..Report::default() });
        let refused = desk.send_image(for_ada).await.unwrap_err();
        assert_violations(&refused, &["report"]);
        platform.advance(SignedDuration::from_hours(25));
        let of_ada = Desk::with(platform, &credentials, "courier").await;
        let refused = of_ada.upload(&order.pickup, &jpeg("wall", "")).await.unwrap_err();
        assert_unknown(&refused, &order.pickup);
        assert_eq!(platform.image_files(), 2);
    }

    async fn what_is_no_whole_image_is_refused_and_nothing_is_stored(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        let image = jpeg("parcel", "");
        let mut interrupted = chunks(&order.pickup, &image);
        interrupted.pop();
        let of = |content: &[u8]| chunks(&order.pickup, content);
        // Refused before all of it has arrived.
        let part = UploadImageRequest { content: vec![0xff; 1 << 20], ..UploadImageRequest::default() };
        let first = UploadImageRequest { parent: order.pickup.clone(), ..part.clone() };
        let large = [vec![first], vec![part; 49]].concat();

        for chunks in [
            of(b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>"),
            of(&image[..image.len() - 1]),
            vec![UploadImageRequest { parent: order.pickup.clone(), is_last: true, ..UploadImageRequest::default() }],
            interrupted,
            large,
        ] {
            let refused = desk.send_image(chunks).await.unwrap_err();
            assert_violations(&refused, &["content"]);
        }

        let refused = desk.send_image(Vec::new()).await.unwrap_err();
        assert_violations(&refused, &["content"]);
        for number in 0..20 {
            desk.upload(&order.pickup, &jpeg(&number.to_string(), "")).await.unwrap();
        }
        let refused = desk.upload(&order.pickup, &image).await.unwrap_err();
        assert_violations(&refused, &["content"]);
        assert_eq!(desk.task(&order.pickup).await.images.len(), 20);
        assert_eq!(platform.image_files(), 20);
    }

    async fn erasing_a_delivery_deletes_its_images(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order, other]: [Order; 2] = orders(&client).await;
        let image = jpeg("parcel", "");
        let erased = desk.upload(&order.pickup, &image).await.unwrap();
        let kept = desk.upload(&other.pickup, &image).await.unwrap();

        platform.run_delivery_json(&["erase", "--delivery", iri(&order.delivery)]).await;

        assert_unknown(&desk.read_image(&erased.name).await.unwrap_err(), &erased.name);
        assert_eq!(desk.task(&order.pickup).await.images, [""; 0]);
        let refused = desk.upload(&order.pickup, &image).await.unwrap_err();
        assert_refused(&refused, "ERASED");
        assert_eq!(desk.read_image(&kept.name).await.unwrap().1, image);
        eventually(Duration::from_secs(30), "the file is not deleted", async || {
            (platform.image_files() == 1).then_some(())
        })
        .await;
    }
}
