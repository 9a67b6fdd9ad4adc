//! The TOML structure of a price list; `parse` checks its values. All values of the wrong type are
//! reported: a wrong one is absent from the result.

use std::{collections::BTreeMap, ops::Range};

use serde::{Deserialize, de::DeserializeOwned};
use toml::{
    Spanned,
    de::{DeTable, DeValue, ValueDeserializer},
};

use crate::definition::Mistake;

/// Keeps the error response short.
pub(super) const MAX_MISTAKES: usize = 100;

#[derive(Default)]
pub(super) struct Definition {
    pub(super) currency: Option<Spanned<String>>,
    pub(super) tax_name: Option<String>,
    /// Basis points.
    pub(super) tax_rate: Option<Spanned<i64>>,
    pub(super) strategy: Option<Strategy>,
    pub(super) quote_expiry: Option<Spanned<String>>,
    /// The volumes of packages by their types.
    pub(super) packages: Option<BTreeMap<String, Option<Spanned<i64>>>>,
    pub(super) rules: Vec<Rule>,
}

/// How rules combine into a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// The first matching rule sets the price.
    First,
    /// All matching rules add to the price.
    Sum,
}

pub(super) struct Rule {
    pub(super) span: Range<usize>,
    pub(super) name: Option<Spanned<String>>,
    pub(super) when: Option<Spanned<String>>,
    pub(super) target: Target,
    pub(super) price: Option<Spanned<RulePrice>>,
}

/// What a rule is evaluated for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Target {
    #[default]
    Delivery,
    /// Each of the two tasks.
    Task,
}

/// The price of a rule: a fixed amount, or a table of one of the forms of `Charge`.
pub(super) enum RulePrice {
    Fixed(i64),
    Table(Box<PriceTable>),
}

pub(super) struct PriceTable {
    pub(super) step: Option<Measure>,
    pub(super) every: Option<Spanned<i64>>,
    pub(super) above: Option<Spanned<i64>>,
    pub(super) per_package: Option<Spanned<String>>,
    pub(super) from: Option<Spanned<i64>>,
    pub(super) then: Option<i64>,
    pub(super) amount: Option<i64>,
    pub(super) percent: Option<Spanned<i64>>,
}

/// The quantity that steps are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Measure {
    /// Metres.
    Distance,
    /// Seconds.
    Duration,
    /// Grams.
    Weight,
    /// In the units of `[packages]`.
    Volume,
}

impl Measure {
    pub(super) const ALL: [Self; 4] = [Self::Distance, Self::Duration, Self::Weight, Self::Volume];

    /// The name of the CEL variable.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Distance => "distance",
            Self::Duration => "duration",
            Self::Weight => "weight",
            Self::Volume => "volume",
        }
    }
}

impl Definition {
    /// Reads the structure, and at most [`MAX_MISTAKES`] mistakes in it.
    pub(super) fn read(text: &str) -> (Self, Vec<Mistake>) {
        let (document, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let mistakes = errors.iter().take(MAX_MISTAKES);
            let mistakes = mistakes.map(|error| Mistake::of_toml(text, error));
            return (Self::default(), mistakes.collect());
        }
        let mut mistakes = Vec::new();
        let mut fields = Fields {
            text,
            span: 0..0,
            table: document.into_inner(),
            mistakes: &mut mistakes,
        };
        let currency = fields.require("currency");
        let (tax_name, tax_rate) = match fields.table("tax") {
            Some(mut tax) => {
                let tax_values = (tax.require("name"), tax.require("rate"));
                tax.end("name, rate");
                tax_values
            }
            None => (None, None),
        };
        let strategy = fields.require("strategy");
        let quote_expiry = fields.optional("quote_expiry");
        let packages = fields.packages();
        let rules = fields.rules();
        fields.end("currency, tax, strategy, quote_expiry, packages, rule");
        let definition = Self {
            currency,
            tax_name,
            tax_rate,
            strategy,
            quote_expiry,
            packages,
            rules,
        };
        (definition, mistakes)
    }
}

/// The fields of a table that have not been read yet.
struct Fields<'a, 't> {
    text: &'t str,
    span: Range<usize>,
    table: DeTable<'t>,
    mistakes: &'a mut Vec<Mistake>,
}

impl<'t> Fields<'_, 't> {
    /// Reads a field; `None` if it is absent or has the wrong type.
    fn optional<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = self.table.remove(key)?;
        T::deserialize(ValueDeserializer::from(value))
            .map_err(|error| self.toml_mistake(&error))
            .ok()
    }

    /// As [`Fields::optional`]; it is a mistake if the field is absent.
    fn require<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        self.require_key(key);
        self.optional(key)
    }

    fn require_key(&mut self, key: &str) {
        if !self.table.contains_key(key) {
            self.mistake(self.span.clone(), format!("`{key}` is missing"));
        }
    }

    /// A required table.
    fn table(&mut self, key: &str) -> Option<Fields<'_, 't>> {
        self.require_key(key);
        let value = self.table.remove(key)?;
        self.fields(value, key)
    }

    fn fields(&mut self, value: Spanned<DeValue<'t>>, key: &str) -> Option<Fields<'_, 't>> {
        let span = value.span();
        let DeValue::Table(table) = value.into_inner() else {
            self.mistake(span, format!("`{key}` must be a table"));
            return None;
        };
        Some(Fields {
            text: self.text,
            span,
            table,
            mistakes: self.mistakes,
        })
    }

    fn packages(&mut self) -> Option<BTreeMap<String, Option<Spanned<i64>>>> {
        let value = self.table.remove("packages")?;
        let Fields { table, .. } = self.fields(value, "packages")?;
        let mut packages = BTreeMap::new();
        for (kind, package) in table {
            let mut volume = None;
            if let Some(mut package) = self.fields(package, kind.get_ref()) {
                volume = package.optional("volume");
                package.end("volume");
            }
            packages.insert(kind.into_inner().into_owned(), volume);
        }
        Some(packages)
    }

    fn rules(&mut self) -> Vec<Rule> {
        let Some(value) = self.table.remove("rule") else {
            return Vec::new();
        };
        let span = value.span();
        let DeValue::Array(rules) = value.into_inner() else {
            self.mistake(span, "write each rule as [[rule]]".to_owned());
            return Vec::new();
        };
        rules
            .into_iter()
            .filter_map(|rule| self.fields(rule, "rule").map(Fields::rule))
            .collect()
    }

    fn rule(mut self) -> Rule {
        let rule = Rule {
            span: self.span.clone(),
            name: self.require("name"),
            when: self.require("when"),
            target: self.optional("for").unwrap_or_default(),
            price: self.price(),
        };
        self.end("name, when, for, price");
        rule
    }

    fn price(&mut self) -> Option<Spanned<RulePrice>> {
        self.require_key("price");
        let value = self.table.remove("price")?;
        let span = value.span();
        let price = match value.get_ref() {
            DeValue::Integer(_) => i64::deserialize(ValueDeserializer::from(value))
                .map(RulePrice::Fixed)
                .map_err(|error| self.toml_mistake(&error))
                .ok()?,
            DeValue::Table(_) => {
                let table = self.fields(value, "price")?.price_table()?;
                RulePrice::Table(Box::new(table))
            }
            _ => {
                let message = "a price is a whole number of minor units (499 is 4.99), or a table";
                self.mistake(span, message.to_owned());
                return None;
            }
        };
        Some(Spanned::new(span, price))
    }

    /// `None` if a value is wrong: the form of the price is then unknown.
    fn price_table(mut self) -> Option<PriceTable> {
        let mistakes_before = self.mistakes.len();
        let table = PriceTable {
            step: self.optional("step"),
            every: self.optional("every"),
            above: self.optional("above"),
            per_package: self.optional("per_package"),
            from: self.optional("from"),
            then: self.optional("then"),
            amount: self.optional("amount"),
            percent: self.optional("percent"),
        };
        let is_complete = self.table.is_empty() && self.mistakes.len() == mistakes_before;
        self.end("step, amount, every, above, per_package, from, then, percent");
        is_complete.then_some(table)
    }

    /// Reports the fields that are not known.
    fn end(mut self, known: &str) {
        for (key, _) in std::mem::take(&mut self.table) {
            let message = format!("unknown field `{}`; the fields are {known}", key.get_ref());
            self.mistake(key.span(), message);
        }
    }

    fn toml_mistake(&mut self, error: &toml::de::Error) {
        let message = error.message().trim().to_owned();
        self.mistake(error.span().unwrap_or(0..0), message);
    }

    /// Each position costs a pass over the text, so that a limit is needed here too.
    fn mistake(&mut self, span: Range<usize>, message: String) {
        if self.mistakes.len() < MAX_MISTAKES {
            self.mistakes.push(Mistake::at(self.text, span, message));
        }
    }
}
