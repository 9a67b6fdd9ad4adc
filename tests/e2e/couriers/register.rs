//! Couriers: created, read, listed, changed, disabled.

use jiff::SignedDuration;
use proto::{
    Courier, CreateCourierRequest, GetCourierRequest, ListCouriersRequest, UpdateCourierRequest,
    iri::Collection,
};
use tonic::Status;

use super::{Desk, assert_unknown, assert_violations, now};
use crate::harness::{Platform, UNKNOWN_ID};

async fn create(desk: &Desk, display_name: &str, telephone: &str) -> Result<Courier, Status> {
    let request = CreateCourierRequest {
        display_name: display_name.to_owned(),
        telephone: telephone.to_owned(),
        idempotency: None,
    };
    desk.create_courier(request).await
}

async fn get(desk: &Desk, name: &str) -> Result<Courier, Status> {
    let name = name.to_owned();
    desk.get_courier(GetCourierRequest { name }).await
}

async fn list(desk: &Desk) -> Vec<Courier> {
    let listed = desk
        .list_couriers(ListCouriersRequest::default())
        .await
        .unwrap();
    listed.couriers
}

fn update(courier: &Courier) -> UpdateCourierRequest {
    UpdateCourierRequest {
        name: courier.name.clone(),
        ..Default::default()
    }
}

on_both_databases! {
    async fn couriers_are_created_read_and_listed_oldest_first(platform: &Platform) {
        let desk = Desk::authorized(platform).await;
        assert_eq!(list(&desk).await, []);

        let ada = create(&desk, "Ada Martin", "06 12 34 56 78").await.unwrap();

        let expected = Courier {
            name: ada.name.clone(),
            display_name: "Ada Martin".to_owned(),
            telephone: "+33612345678".to_owned(),
            create_time: now(platform),
            disable_time: None,
        };
        assert_eq!(ada, expected);
        assert!(Collection::Couriers.id(&ada.name).is_some(), "{}", ada.name);
        platform.advance(SignedDuration::from_mins(1));
        // Of the same name, and without a telephone.
        let namesake = create(&desk, "Ada Martin", "").await.unwrap();
        let expected = Courier {
            name: namesake.name.clone(),
            telephone: String::new(),
            create_time: now(platform),
            ..ada.clone()
        };
        assert_eq!(namesake, expected);
        platform.advance(SignedDuration::from_mins(1));
        let belgian = create(&desk, "Ben", "+32 470 12 34 56").await.unwrap();
        assert_eq!(belgian.telephone, "+32470123456");
        for courier in [&ada, &namesake, &belgian] {
            assert_eq!(get(&desk, &courier.name).await.unwrap(), *courier);
        }
        assert_eq!(list(&desk).await, [ada, namesake, belgian]);
    }

    async fn a_courier_is_changed_in_the_fields_that_are_present(platform: &Platform) {
        let desk = Desk::authorized(platform).await;
        let ada = create(&desk, "Ada", "06 12 34 56 78").await.unwrap();
        let ben = create(&desk, "Ben", "06 12 34 56 79").await.unwrap();
        platform.advance(SignedDuration::from_mins(1));

        let mut expected = ada.clone();
        for (display_name, telephone, stored_name, stored_telephone) in [
            (Some("Ada Martin"), None, "Ada Martin", "+33612345678"),
            (None, Some("07 12 34 56 78"), "Ada Martin", "+33712345678"),
            (None, None, "Ada Martin", "+33712345678"),
            (Some("Ada"), Some(""), "Ada", ""),
        ] {
            let request = UpdateCourierRequest {
                display_name: display_name.map(str::to_owned),
                telephone: telephone.map(str::to_owned),
                ..update(&ada)
            };

            let updated = desk.update_courier(request).await.unwrap();

            stored_name.clone_into(&mut expected.display_name);
            stored_telephone.clone_into(&mut expected.telephone);
            assert_eq!(updated, expected, "{display_name:?} {telephone:?}");
            assert_eq!(get(&desk, &ada.name).await.unwrap(), expected);
        }
        assert_eq!(list(&desk).await, [expected, ben]);
    }

    async fn a_courier_is_disabled_and_enabled_again(platform: &Platform) {
        let desk = Desk::authorized(platform).await;
        let ada = create(&desk, "Ada", "").await.unwrap();
        platform.advance(SignedDuration::from_mins(1));

        let disabled = desk.disable(&ada.name, true).await;

        let expected = Courier { disable_time: now(platform), ..ada.clone() };
        assert_eq!(disabled, expected);
        let renamed = UpdateCourierRequest { display_name: Some("Ada Martin".to_owned()), ..update(&ada) };
        let renamed = desk.update_courier(renamed).await.unwrap();
        assert_eq!(renamed, Courier { display_name: "Ada Martin".to_owned(), ..expected });
        assert_eq!(list(&desk).await, std::slice::from_ref(&renamed));
        let enabled = desk.disable(&ada.name, false).await;
        assert_eq!(enabled, Courier { disable_time: None, ..renamed });
        assert_eq!(get(&desk, &ada.name).await.unwrap(), enabled);
    }

    async fn all_violations_are_reported_at_once_and_change_nothing(platform: &Platform) {
        let desk = Desk::authorized(platform).await;
        let ada = create(&desk, "Ada", "06 12 34 56 78").await.unwrap();

        for (display_name, telephone, fields) in [
            ("", "", &["display_name"][..]),
            (" \n", "06 12 34 56 78", &["display_name"]),
            ("Ben", "six", &["telephone"]),
            ("", "abc", &["display_name", "telephone"]),
        ] {
            let refused = create(&desk, display_name, telephone).await.unwrap_err();
            assert_violations(&refused, fields);
            let request = UpdateCourierRequest {
                display_name: Some(display_name.to_owned()),
                telephone: Some(telephone.to_owned()),
                disabled: Some(true),
                ..update(&ada)
            };
            let refused = desk.update_courier(request).await.unwrap_err();
            assert_violations(&refused, fields);
        }
        assert_eq!(list(&desk).await, [ada]);
    }

    async fn couriers_are_listed_in_pages_and_by_whether_they_are_disabled(platform: &Platform) {
        let desk = Desk::authorized(platform).await;
        let mut couriers = Vec::new();
        for name in ["Ada", "Ben", "Cem", "Dan"] {
            couriers.push(create(&desk, name, "").await.unwrap());
        }
        for index in [1, 3] {
            couriers[index] = desk.disable(&couriers[index].name, true).await;
        }
        let [ada, ben, cem, dan]: [Courier; 4] = couriers.try_into().unwrap();
        let all = [&ada, &ben, &cem, &dan];

        for (disabled, expected) in [(None, &all[..]), (Some(true), &[&ben, &dan]), (Some(false), &[&ada, &cem])] {
            for page_size in [None, Some(1), Some(2), Some(3), Some(100)] {
                let mut request = ListCouriersRequest { page_size, disabled, ..Default::default() };
                let mut listed = Vec::new();
                loop {
                    let page = desk.list_couriers(request.clone()).await.unwrap();
                    assert!(page.couriers.len() <= page_size.unwrap_or(4) as usize, "{request:?}");
                    listed.extend(page.couriers);
                    if page.next_page_token.is_empty() {
                        break;
                    }
                    request.page_token = page.next_page_token;
                }
                assert_eq!(listed.iter().collect::<Vec<_>>(), expected, "{disabled:?} {page_size:?}");
            }
        }
        for (request, field) in [
            (ListCouriersRequest { page_size: Some(0), ..Default::default() }, "page_size"),
            (ListCouriersRequest { page_size: Some(101), ..Default::default() }, "page_size"),
            (ListCouriersRequest { page_token: "x".to_owned(), ..Default::default() }, "page_token"),
        ] {
            assert_violations(&desk.list_couriers(request).await.unwrap_err(), &[field]);
        }
        let names = async |flag: &str| {
            let printed = platform.run_delivery_json(&["couriers", "list", flag]).await;
            let couriers = printed["couriers"].as_array().unwrap().clone();
            couriers.iter().map(|courier| courier["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("--disabled").await, ["Ben", "Dan"]);
        assert_eq!(names("--enabled").await, ["Ada", "Cem"]);
    }

    async fn a_courier_that_does_not_exist_is_not_found(platform: &Platform) {
        let desk = Desk::authorized(platform).await;
        let unknown = format!("couriers/{UNKNOWN_ID}");

        let refused = get(&desk, &unknown).await.unwrap_err();
        assert_unknown(&refused, &unknown);
        let request = UpdateCourierRequest {
            name: unknown.clone(),
            display_name: Some("Ada".to_owned()),
            ..Default::default()
        };
        let refused = desk.update_courier(request).await.unwrap_err();
        assert_unknown(&refused, &unknown);
        assert_eq!(list(&desk).await, []);
    }
}
