//! The body that creates or prices a delivery.

use std::collections::HashMap;

use proto::{DeliveryDraft, Package, TaskDraft, iri, task_draft};
use serde_json::Value;

use crate::{
    report::{Object, Report},
    resources::addresses,
};

/// Reads what can be represented, and reports the rest.
pub(crate) fn read(body: &[u8], report: &mut Report) -> DeliveryDraft {
    let value = report.parse(body);
    let delivery = Object::root(&value);
    let mut task = |member| {
        let task = delivery.object(member, member, report)?;
        Some(read_task(&task, report))
    };
    DeliveryDraft {
        pickup: task("pickup"),
        dropoff: task("dropoff"),
        external_reference: delivery.text("externalReference", "external_reference", report),
        retail_price: delivery
            .text("retailPrice", "retail_price", report)
            .map(|iri| iri::name(&iri).to_owned()),
    }
}

fn read_task(task: &Object<'_>, report: &mut Report) -> TaskDraft {
    TaskDraft {
        address: read_address(task, report),
        before: task.renamed_text(("before", "doneBefore"), report),
        after: task.renamed_text(("after", "doneAfter"), report),
        time_slot: task.text("timeSlot", "time_slot", report),
        comments: task.text("comments", "comments", report),
        weight: task.integer("weight", "weight", report),
        packages: read_packages(task, report),
        tags: read_tags(task, report),
        metadata: read_metadata(task, report),
    }
}

fn read_address(task: &Object<'_>, report: &mut Report) -> Option<task_draft::Address> {
    let field = task.path("address");
    match task.get("address")? {
        Value::String(text) => Some(task_draft::Address::AddressText(text.clone())),
        value @ (Value::Object(_) | Value::Array(_)) => {
            let address = Object::of(value, field, report)?;
            Some(task_draft::Address::AddressDraft(addresses::read(
                &address, report,
            )))
        }
        other => {
            report.wrong_type(field, "a text or an object", other);
            None
        }
    }
}

/// As many as there are, so that core counts them as the client does.
fn read_packages(task: &Object<'_>, report: &mut Report) -> Vec<Package> {
    let elements = task.array("packages", "packages", report);
    let mut packages = Vec::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        let path = task.path(&format!("packages[{index}]"));
        let package = Object::of(element, path, report);
        packages.push(match package {
            Some(package) => Package {
                r#type: package.text("type", "type", report).unwrap_or_default(),
                quantity: read_quantity(&package, report),
            },
            None => Package::default(),
        });
    }
    packages
}

fn read_quantity(package: &Object<'_>, report: &mut Report) -> u32 {
    let Some(quantity) = package.integer("quantity", "quantity", report) else {
        return 0;
    };
    u32::try_from(quantity).unwrap_or_else(|_| {
        let wrong = format!(
            "{quantity} is not a number of packages: at least 1, at most {}",
            u32::MAX
        );
        report.add(package.path("quantity"), "OUT_OF_RANGE", wrong);
        0
    })
}

/// An array of tags, or tags in one text, separated by spaces.
fn read_tags(task: &Object<'_>, report: &mut Report) -> Vec<String> {
    let Some(value) = task.get("tags") else {
        return Vec::new();
    };
    match value {
        Value::String(tags) => tags.split_whitespace().map(str::to_owned).collect(),
        Value::Array(elements) => {
            let mut tags = Vec::with_capacity(elements.len());
            for (index, element) in elements.iter().enumerate() {
                if !element.is_string() {
                    report.wrong_type(task.path(&format!("tags[{index}]")), "a text", element);
                }
                tags.push(element.as_str().unwrap_or_default().to_owned());
            }
            tags
        }
        other => {
            report.wrong_type(task.path("tags"), "an array or a text", other);
            Vec::new()
        }
    }
}

fn read_metadata(task: &Object<'_>, report: &mut Report) -> HashMap<String, String> {
    let Some(metadata) = task.object("metadata", "metadata", report) else {
        return HashMap::new();
    };
    let mut texts = HashMap::new();
    for (key, value) in metadata.members() {
        match value {
            Value::String(text) => {
                texts.insert(key.clone(), text.clone());
            }
            other => report.wrong_type(metadata.path(key), "a text", other),
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*, sample};
    use serde_json::json;

    use super::*;
    use crate::error::Error;

    /// Any value, most of them in places where the readers look.
    fn any_value() -> impl Strategy<Value = Value> {
        let names = sample::select(vec![
            "pickup",
            "dropoff",
            "address",
            "latLng",
            "geo",
            "latitude",
            "telephone",
            "before",
            "doneBefore",
            "timeSlot",
            "weight",
            "packages",
            "type",
            "quantity",
            "tags",
            "metadata",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 8, move |inner| {
            prop_oneof![
                collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                collection::hash_map(names.clone(), inner, 0..8).prop_map(|members| json!(members)),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_is_not_read_is_reported(
            task in any_value(),
        ) {
            let body = json!({ "dropoff": task }).to_string();
            let mut report = Report::default();

            let draft = read(body.as_bytes(), &mut report);

            let is_object = task.is_null() || task.is_object() || task == json!([]);
            prop_assert_eq!(is_object, report.violations().iter().all(|v| v.field != "dropoff"));
            prop_assert_eq!(
                draft.dropoff.is_some(),
                is_object && !task.is_null()
            );
            for violation in report.violations() {
                prop_assert!(violation.field.starts_with("dropoff"));
            }
        }

        /// In the client's words, so that it finds what is meant; or what ought to be there.
        #[test]
        fn what_is_reported_is_there(body in any_value()) {
            let mut report = Report::default();
            read(body.to_string().as_bytes(), &mut report);

            let Some(Error::Invalid { violations, .. }) = report.into_error() else {
                return Ok(());
            };
            for violation in violations {
                let path = violation.path;
                let (parent, _) = path.rsplit_once('.').unwrap_or_default();
                prop_assert!(
                    find(&body, &path).or(find(&body, parent)).is_some(),
                    "{path} is not in {body}"
                );
            }
        }

        #[test]
        fn what_is_well_formed_is_read_as_it_is(task in any_task()) {
            let body = json!({ "pickup": written(&task), "externalReference": "42" });
            let mut report = Report::default();

            let draft = read(body.to_string().as_bytes(), &mut report);

            prop_assert_eq!(report.violations(), vec![]);
            prop_assert_eq!(draft.external_reference.as_deref(), Some("42"));
            prop_assert_eq!(draft.pickup, Some(task));
            prop_assert_eq!(draft.dropoff, None);
        }

        #[test]
        fn no_body_makes_the_reader_panic(body in any::<Vec<u8>>()) {
            read(&body, &mut Report::default());
        }
    }

    /// The value at a path such as `dropoff.packages[0].type`.
    fn find<'v>(body: &'v Value, path: &str) -> Option<&'v Value> {
        path.split(['.', '['])
            .filter(|step| !step.is_empty())
            .try_fold(body, |value, step| match step.strip_suffix(']') {
                Some(index) => value.get(index.parse::<usize>().ok()?),
                None => value.get(step),
            })
    }

    prop_compose! {
        fn any_task()(
            texts in collection::vec(proptest::option::of(any::<String>()), 5),
            weight in any::<Option<i64>>(),
            packages in collection::vec((any::<String>(), any::<u32>()), 0..4),
            tags in collection::vec(any::<String>(), 0..4),
            metadata in collection::hash_map(any::<String>(), any::<String>(), 0..4),
        ) -> TaskDraft {
            let [address, before, after, time_slot, comments] = texts.try_into().unwrap();
            TaskDraft {
                address: address.map(task_draft::Address::AddressText),
                before,
                after,
                time_slot,
                comments,
                weight,
                packages: packages
                    .into_iter()
                    .map(|(r#type, quantity)| Package { r#type, quantity })
                    .collect(),
                tags,
                metadata,
            }
        }
    }

    fn written(task: &TaskDraft) -> Value {
        let address = task.address.as_ref().map(|address| match address {
            task_draft::Address::AddressText(text) => text,
            task_draft::Address::AddressDraft(_) => unreachable!("it is not made"),
        });
        let packages = task.packages.iter();
        json!({
            "address": address,
            "before": task.before,
            "after": task.after,
            "timeSlot": task.time_slot,
            "comments": task.comments,
            "weight": task.weight,
            "packages": packages
                .map(|package| json!({ "type": package.r#type, "quantity": package.quantity }))
                .collect::<Vec<_>>(),
            "tags": task.tags,
            "metadata": task.metadata,
        })
    }
}
