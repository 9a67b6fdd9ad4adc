//! Compiles `delivery/v1/*.proto` without `protoc`, and writes the descriptors for reflection, with those of
//! the details of errors.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=delivery");
    println!("cargo:rerun-if-changed=google");
    let mut files: Vec<PathBuf> = fs::read_dir("delivery/v1")?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();

    let descriptors = protox::compile(&files, ["."])?;

    files.push("google/rpc/error_details.proto".into());
    let with_details = protox::compile(&files, ["."])?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), with_details.encode_to_vec())?;
    // `src/redacted.rs` implements `Debug` for these, without their secrets.
    let with_secrets = [
        "GetTrackingRequest",
        "GetTrackingLogoRequest",
        "IssueTokenRequest",
        "AccessToken",
        "ApiClient",
        "Webhook",
        "Notification",
    ]
    .map(|message| format!(".delivery.v1.{message}"));
    // The REST API shows these as they are.
    let serialize = "#[derive(serde::Serialize)]";
    tonic_prost_build::configure()
        .skip_debug(with_secrets)
        // It is within one of them.
        .enum_attribute(".delivery.v1.ApiClient.TaskStatus", "#[derive(Debug)]")
        .type_attribute(".delivery.v1.Package", serialize)
        .type_attribute(".delivery.v1.RuleOutcome", serialize)
        .compile_fds(descriptors)?;
    Ok(())
}
