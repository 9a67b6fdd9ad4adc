//! The texts that the program contains: style sheets, scripts, guides and example receivers.

/// Name and text of files in a folder; the names are without the ending.
macro_rules! texts {
    ($folder:literal $ending:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!($folder, $name, $ending)))),*]
    };
}

pub(super) static STYLES: &[(&str, &str)] = texts! { "" "": "page.css" "operation.css" };

pub(super) static SCRIPTS: &[(&str, &str)] = texts! {
    "" "":
    "page.js" "authorise.js" "client.js" "demo.js" "dom.js" "form.js" "guide.js" "languages.js"
    "openapi.js" "operation.js" "request.js" "response.js" "samples.js" "schema.js" "search.js"
    "search_box.js" "webhooks.js"
};

pub(super) static RECEIVERS: &[(&str, &str)] = texts! {
    "../../../../examples/receivers/" "":
    "receiver.php" "receiver.py" "receiver.mjs" "receiver.go" "receiver.rs"
};

/// Name and Markdown of every guide, in reading order.
pub(super) static GUIDES: &[(&str, &str)] = texts! {
    "../../../../docs/guides/" ".md":
    "shop" "webhooks" "internal-service" "times" "addresses" "prices" "idempotency" "errors"
    "requests" "coopcycle"
};
