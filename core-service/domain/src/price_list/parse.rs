//! Parses a definition into a price list, or into all its mistakes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cel::Env;
use iso_currency::Currency;
use jiff::SignedDuration;
use toml::{Spanned, de::DeValue};

use super::{
    calculation::Rule,
    charge::Charge,
    check::RuleReader,
    condition::Condition,
    definition::{Strategy, Target},
    functions,
    list::PriceList,
    sample_inputs::{SampleInput, sample_inputs},
    variables::Scope,
    warnings,
};
use crate::{
    definition::{Fields, Mistake, read_toml},
    money::TaxRate,
    task::TaskKind,
    zone::Zones,
};

/// The maximum number of reported mistakes, so that the error response is short.
const MAX_MISTAKES: usize = 100;
const MAX_RULES: usize = 500;
/// Maximum length of a definition in bytes.
const MAX_LENGTH: usize = 1024 * 1024;
/// Maximum volume of a package, so that the total of a delivery is exact in a `double`.
const MAX_VOLUME: i64 = 1_000_000_000;
/// Maximum length of the name of a rule or of the type of a package, in characters.
const MAX_NAME_LENGTH: usize = 255;
/// Maximum length of a condition's text in the explanation of a price, in characters.
const MAX_CONDITION_TEXT_LENGTH: usize = 200;
const DEFAULT_QUOTE_EXPIRY: SignedDuration = SignedDuration::from_mins(15);
const MAX_QUOTE_EXPIRY: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Stack for parsing conditions at the maximum nesting. An unoptimised build needs several hundred
/// kilobytes per level, in total more than the default stack. Unused stack takes no memory.
const STACK_BYTES: usize = 64 * 1024 * 1024;

impl PriceList {
    /// Parses and checks a definition (TOML), and returns all its mistakes.
    pub fn parse(text: &str, zones: &Zones) -> Result<Self, Vec<Mistake>> {
        Self::parse_in(None, text, zones)
    }

    /// Like [`PriceList::parse`]; if the store's currency is given, another currency is a mistake.
    pub fn parse_in(
        store_currency: Option<Currency>,
        text: &str,
        zones: &Zones,
    ) -> Result<Self, Vec<Mistake>> {
        if text.len() > MAX_LENGTH {
            let message = format!(
                "a price list is at most {MAX_LENGTH} bytes long, this one {}",
                text.len()
            );
            return Err(vec![Mistake::at(text, 0..0, message)]);
        }
        let parsed = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            let parsing = thread.spawn_scoped(scope, || {
                read_toml(text, MAX_MISTAKES, |fields| {
                    read_list(fields, store_currency, zones)
                })
            });
            parsing.map(|parsing| {
                parsing
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        });
        parsed.unwrap_or_else(|error| {
            let message = format!("cannot check the conditions: {error}");
            Err(vec![Mistake::at(text, 0..0, message)])
        })
    }
}

fn read_list(
    mut fields: Fields<'_, '_>,
    store_currency: Option<Currency>,
    zones: &Zones,
) -> Option<PriceList> {
    let currency = currency(&mut fields, store_currency);
    let tax = fields.require_value("tax");
    let tax_rate = tax.and_then(|tax| read_tax_rate(fields.fields(tax, "tax")?));
    // An unknown strategy must cause no further mistakes: `sum` accepts every charge.
    let strategy = fields.require("strategy").unwrap_or(Strategy::Sum);
    let quote_expiry = quote_expiry(&mut fields);
    let (packages, volumes) = packages(&mut fields).unzip();
    let volumes = volumes.unwrap_or_default();

    // Macros are disabled, so that conditions cannot loop.
    let env = Arc::new(Env::default().with_stdlib());
    let functions = functions::context(&env, zones);
    let rules = {
        let samples = sample_inputs(packages.as_ref(), &volumes);
        let variables = samples.each_ref().map(SampleInput::variables);
        // Task rules have all variables of delivery rules too.
        let task = Some(TaskKind::Dropoff);
        let scopes = variables
            .each_ref()
            .map(|variables| Scope { variables, task });
        let reader = RuleReader {
            env: &env,
            zones,
            strategy,
            is_package: &|kind| packages.as_ref().is_some_and(|types| types.contains(kind)),
            sample_contexts: &scopes.each_ref().map(|scope| scope.context(&functions)),
        };
        reader.rules(&mut fields)
    };
    fields.reject_unknown_fields("currency, tax, strategy, quote_expiry, packages, rule");
    if rules.is_empty() && fields.mistake_count() == 0 {
        fields.mistake(0..0, "a price list needs at least one [[rule]]");
    }
    Some(PriceList {
        currency: currency?,
        tax_rate: tax_rate?,
        strategy,
        quote_expiry,
        warnings: warnings::of_rules(&rules, strategy),
        packages,
        volumes,
        rules,
        references_zones: fields.text.contains("in_zone"),
        functions,
    })
}

fn currency(fields: &mut Fields<'_, '_>, store_currency: Option<Currency>) -> Option<Currency> {
    let code: Spanned<String> = fields.require("currency")?;
    let Some(currency) = Currency::from_code(code.get_ref()) else {
        let message = format!(
            "\"{}\" is not an ISO 4217 code such as \"EUR\"",
            code.get_ref()
        );
        return fields.reject(code.span(), message);
    };
    if let Some(store_currency) = store_currency
        && store_currency != currency
    {
        let (list, store) = (currency.code(), store_currency.code());
        let message = format!(
            "the store's currency is {store}, not {list}: write the list in {store}, or change \
             the store's currency first"
        );
        fields.mistake(code.span(), message);
    }
    Some(currency)
}

/// The name of the tax is required, and not used.
fn read_tax_rate(mut fields: Fields<'_, '_>) -> Option<TaxRate> {
    let _: Option<String> = fields.require("name");
    let rate = fields.require("rate").and_then(|rate: Spanned<i64>| {
        TaxRate::from_basis_points(*rate.get_ref()).or_else(|| {
            let message = format!(
                "{} is not a tax rate: write 0 to 10000 basis points (2000 is 20 %)",
                rate.get_ref()
            );
            fields.reject(rate.span(), message)
        })
    });
    fields.reject_unknown_fields("name, rate");
    rate
}

fn quote_expiry(fields: &mut Fields<'_, '_>) -> SignedDuration {
    let Some(text) = fields.optional::<Spanned<String>>("quote_expiry") else {
        return DEFAULT_QUOTE_EXPIRY;
    };
    let quote_expiry: Option<SignedDuration> = text.get_ref().parse().ok();
    quote_expiry
        .filter(|quote_expiry| quote_expiry.is_positive() && *quote_expiry <= MAX_QUOTE_EXPIRY)
        .unwrap_or_else(|| {
            let message = format!(
                "\"{}\" is not a duration in hours, minutes and seconds such as \"15 minutes\", at most \"168 hours\" (7 days)",
                text.get_ref()
            );
            fields.mistake(text.span(), message);
            DEFAULT_QUOTE_EXPIRY
        })
}

/// The types of packages, and the volumes of those types that have one.
fn packages(fields: &mut Fields<'_, '_>) -> Option<(BTreeSet<String>, BTreeMap<String, i64>)> {
    let value = fields.table.remove("packages")?;
    let mut table = fields.fields(value, "packages")?;
    let (mut types, mut volumes) = (BTreeSet::new(), BTreeMap::new());
    for (kind, package) in std::mem::take(&mut table.table) {
        let kind = kind.into_inner().into_owned();
        if !is_valid_name(&kind) {
            let message = format!("a package needs a name of 1 to {MAX_NAME_LENGTH} characters");
            table.mistake(0..0, message);
        }
        if let Some(mut package) = table.fields(package, &kind) {
            if let Some(volume) = package.optional::<Spanned<i64>>("volume") {
                if !(0..=MAX_VOLUME).contains(volume.get_ref()) {
                    let message = format!("a volume must be from 0 to {MAX_VOLUME}");
                    package.mistake(volume.span(), message);
                }
                volumes.insert(kind.clone(), volume.into_inner());
            }
            package.reject_unknown_fields("volume");
        }
        types.insert(kind);
    }
    Some((types, volumes))
}

impl RuleReader<'_> {
    fn rules(&self, fields: &mut Fields<'_, '_>) -> Vec<Rule> {
        let Some(value) = fields.table.remove("rule") else {
            return Vec::new();
        };
        let span = value.span();
        let DeValue::Array(rules) = value.into_inner() else {
            fields.mistake(span, "write each rule as [[rule]]");
            return Vec::new();
        };
        if let Some(rule) = rules.get(MAX_RULES) {
            let message = format!(
                "a price list has at most {MAX_RULES} rules, this one {}",
                rules.len()
            );
            fields.mistake(rule.span(), message);
            return Vec::new();
        }
        rules
            .into_iter()
            .filter_map(|rule| self.rule(fields.fields(rule, "rule")?))
            .collect()
    }

    fn rule(&self, mut fields: Fields<'_, '_>) -> Option<Rule> {
        let name: Option<Spanned<String>> = fields.require("name");
        if let Some(name) = name.as_ref().filter(|name| !is_valid_name(name.get_ref())) {
            let message = format!("a rule needs a name of 1 to {MAX_NAME_LENGTH} characters");
            fields.mistake(name.span(), message);
        }
        let when: Option<Spanned<String>> = fields.require("when");
        let target = fields.optional("for").unwrap_or_default();
        let charge = Charge::read(&mut fields, self.strategy, self.is_package);
        let condition = when
            .as_ref()
            .and_then(|when| self.condition(&mut fields, when, target));
        fields.reject_unknown_fields("name, when, for, price");
        Some(Rule {
            name: name?.into_inner(),
            condition: condition?,
            condition_text: condition_text(when?.get_ref()),
            target,
            charge: charge?,
        })
    }

    fn condition(
        &self,
        fields: &mut Fields<'_, '_>,
        when: &Spanned<String>,
        target: Target,
    ) -> Option<Condition> {
        let mistakes = match Condition::parse(when.get_ref(), target, self) {
            Ok(condition) => return Some(condition),
            Err(mistakes) => mistakes,
        };
        for mistake in mistakes {
            let span = fields.span_in_string(when.span(), when.get_ref(), mistake.offset);
            fields.mistake(span, mistake.message);
        }
        None
    }
}

/// A condition on one line, truncated.
fn condition_text(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CONDITION_TEXT_LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn is_valid_name(name: &str) -> bool {
    !name.trim().is_empty() && name.chars().count() <= MAX_NAME_LENGTH
}
