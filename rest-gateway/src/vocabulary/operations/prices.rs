//! Retail prices.

use super::{Expects, Needs, On, Operation, Parameter, READ, Returns, deliveries::DRAFT};
use crate::{
    error_codes as codes,
    vocabulary::classes::{deliveries::DELIVERY, prices::RETAIL_PRICE},
};

const SUBJECT: &str = "Retail prices";

const TAX: &[Parameter] = &[Parameter {
    name: "tax",
    place: "query",
    about: "Whether the amount includes the tax.",
    schema: r#"{"type": "string", "enum": ["included", "excluded"], "default": "included"}"#,
}];

pub(super) static ALL: &[Operation] = &[
    Operation {
        on: On::Path(&RETAIL_PRICE),
        method: "POST",
        path: "/api/retail_prices/calculate",
        id: "calculateRetailPrice",
        title: "Calculates the price of a delivery",
        about: "The delivery is not created. The price can be read again, at its `@id`, until it \
                expires.",
        subject: SUBJECT,
        needs: Needs::Scope("deliveries"),
        parameters: TAX,
        expects: Expects::Resource(&DELIVERY, DRAFT),
        returns: Returns::Resource(&RETAIL_PRICE),
        refusals: &[
            &codes::PRICE_NOT_CALCULATED,
            &codes::EXTERNAL_REFERENCE_TAKEN,
        ],
    },
    Operation {
        on: On::Resource(&RETAIL_PRICE),
        path: "/api/retail_prices/{token}",
        id: "getRetailPrice",
        title: "Reads a price that was calculated",
        subject: SUBJECT,
        needs: Needs::Scope("deliveries"),
        parameters: TAX,
        returns: Returns::Resource(&RETAIL_PRICE),
        ..READ
    },
];
