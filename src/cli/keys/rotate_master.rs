//! `delivery keys rotate-master`: encrypts all stored secrets with the current master key.

use anyhow::{bail, ensure};
use proto::{ReencryptSecretsRequest, ReencryptSecretsResponse};

use crate::cli::{
    access::Core,
    output::{self, View},
};

/// How many calls are made between two lines of progress.
const CALLS_PER_LINE: usize = 100;

/// The maximum number of passes over all secrets. A pass that finds none under another key is the
/// last.
const MAX_PASSES: usize = 5;

#[derive(Default)]
struct Rotated {
    current_key: String,
    unused_keys: Vec<String>,
    /// How many were re-encrypted.
    signing_keys: u64,
    platform_secrets: u64,
    webhooks: u64,
    stored_responses: u64,
}

pub(super) async fn run(core: Core, json: bool) -> anyhow::Result<()> {
    let mut rotated = Rotated::default();
    for _ in 0..MAX_PASSES {
        let before = rotated.total();
        pass(&core, &mut rotated).await?;
        if rotated.total() == before {
            output::one(json, rotated.view())?;
            if rotated.unused_keys.is_empty() {
                eprintln!(
                    "note: the core has no other master key; to replace this one, add a key with core-service master-key add (delivery master-key add)"
                );
            }
            return Ok(());
        }
    }
    bail!(
        "secrets are still being encrypted with another master key: make {} current in the file of every core, then repeat this command",
        rotated.current_key
    )
}

/// Examines all secrets once.
async fn pass(core: &Core, rotated: &mut Rotated) -> anyhow::Result<()> {
    let mut page_token = String::new();
    for calls in 1_usize.. {
        // Without an idempotency key: repeating it changes nothing.
        let request = ReencryptSecretsRequest { page_token };
        let response = core.call(request).await?;
        page_token = rotated.add(response)?;
        if page_token.is_empty() {
            break;
        }
        if calls.is_multiple_of(CALLS_PER_LINE) {
            eprintln!("examining: {} secrets re-encrypted", rotated.total());
        }
    }
    Ok(())
}

impl Rotated {
    /// Adds the result of a call. Returns the next page token.
    fn add(&mut self, response: ReencryptSecretsResponse) -> anyhow::Result<String> {
        if self.current_key.is_empty() {
            self.current_key = response.current_key;
        } else {
            ensure!(
                self.current_key == response.current_key,
                "the current master key has changed from {} to {}: make the same key current in the file of every core, then repeat this command",
                self.current_key,
                response.current_key
            );
        }
        self.unused_keys = response.other_keys;
        self.signing_keys += u64::from(response.signing_keys);
        self.platform_secrets += u64::from(response.platform_secrets);
        self.webhooks += u64::from(response.webhooks);
        self.stored_responses += u64::from(response.stored_responses);
        Ok(response.next_page_token)
    }

    fn total(&self) -> u64 {
        self.signing_keys + self.platform_secrets + self.webhooks + self.stored_responses
    }

    fn view(&self) -> View {
        View::default()
            .field("current_key", &*self.current_key)
            .field("unused_keys", &*self.unused_keys)
            .field("signing_keys", self.signing_keys)
            .field("platform_secrets", self.platform_secrets)
            .field("webhooks", self.webhooks)
            .field("stored_responses", self.stored_responses)
    }
}
