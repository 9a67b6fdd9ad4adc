//! What Go's generators make of the protocol, and the example in Go uses.

use std::{fs, path::Path};

use prost::Message;
use prost_types::FileDescriptorSet;

const EXAMPLE: &str = include_str!("../../examples/courier/complete_task.go");

/// The package that `examples/courier/complete_task.go` imports, in the folder that is its module.
const OF_DELIVERY: &str = r#"option go_package = "delivery/v1;deliveryv1";"#;

#[test]
fn every_file_has_a_go_package_and_the_example_imports_it() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (folder, expected) in [
        ("delivery/v1", OF_DELIVERY),
        (
            "google/rpc",
            r#"option go_package = "google.golang.org/genproto/googleapis/rpc/"#,
        ),
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let mut options = text
                .lines()
                .filter(|line| line.starts_with("option go_package"));
            let option = options.next().unwrap_or_default();
            if !option.starts_with(expected) || options.next().is_some() {
                wrong.push(format!("{}: {option}", path.display()));
            }
            count += 1;
        }
    }

    assert_eq!(wrong, [""; 0]);
    assert!(count > 15, "{count}");
    assert!(EXAMPLE.contains("\n\tdeliveryv1 \"courier/delivery/v1\"\n"));
}

/// A machine without Go does not compile it.
#[test]
fn every_generated_name_in_the_example_is_of_the_protocol() {
    let descriptors = FileDescriptorSet::decode(proto::DESCRIPTORS).unwrap();
    let files = &descriptors.file;
    let services = files.iter().flat_map(|file| &file.service);
    let mut rpcs = services
        .filter(|service| service.name() == "Tasks")
        .flat_map(|service| &service.method);
    let rpc = rpcs.find(|rpc| rpc.name() == "CompleteTask").unwrap();
    let message = |path: &str| {
        let mut messages = files.iter().flat_map(|file| &file.message_type);
        let found = messages.find(|message| path == format!(".delivery.v1.{}", message.name()));
        found.unwrap()
    };
    let (request, task) = (message(rpc.input_type()), message(rpc.output_type()));

    assert_eq!(
        names_after("deliveryv1."),
        [request.name(), "NewTasksClient"]
    );
    assert_eq!(names_after("NewTasksClient(connection)."), [rpc.name()]);
    let literal = format!("&deliveryv1.{}{{", request.name());
    let (_, literal) = EXAMPLE.split_once(&literal).unwrap();
    let (members, _) = literal.split_once('}').unwrap();
    let members: Vec<_> = members.split(", ").map(first_name).collect();
    for (message, used) in [(request, members), (task, names_after("task."))] {
        let fields: Vec<_> = message.field.iter().map(|f| go_name(f.name())).collect();
        assert!(!used.is_empty());
        for name in used {
            let is_field = fields.iter().any(|field| field == name);
            assert!(is_field, "{name} is not one of {fields:?}");
        }
    }
}

/// The names that follow each occurrence of a text in the example.
fn names_after(text: &str) -> Vec<&'static str> {
    EXAMPLE.split(text).skip(1).map(first_name).collect()
}

fn first_name(code: &str) -> &str {
    let end = code.find(|char: char| !char.is_alphanumeric());
    code.get(..end.unwrap_or(code.len())).unwrap_or_default()
}

/// The exported name of a field: `store_name` is `StoreName`.
fn go_name(field: &str) -> String {
    let words = field.split('_').filter_map(|word| {
        let mut letters = word.chars();
        Some(letters.next()?.to_ascii_uppercase().to_string() + letters.as_str())
    });
    words.collect()
}
