//! The descriptors that core serves by reflection.

use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet};

#[test]
fn the_details_of_errors_are_described_beside_the_services() {
    let descriptors = FileDescriptorSet::decode(proto::DESCRIPTORS).unwrap();

    let names: Vec<_> = descriptors
        .file
        .iter()
        .map(FileDescriptorProto::name)
        .collect();
    for name in ["delivery/v1/tasks.proto", "google/rpc/error_details.proto"] {
        assert!(names.contains(&name), "{names:?}");
    }
}
