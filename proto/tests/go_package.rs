//! Where Go's generators put the stubs.

use std::{fs, path::Path};

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
    let example = include_str!("../../examples/courier/complete_task.go");
    assert!(example.contains("\n\tdeliveryv1 \"courier/delivery/v1\"\n"));
}
