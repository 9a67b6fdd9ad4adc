//! Parses a definition into a price list, or into all its errors.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use cel::Env;
use iso_currency::Currency;
use jiff::SignedDuration;
use toml::Spanned;

use super::{
    calculation::Rule,
    charge::Charge,
    check::KnownNames,
    condition::Condition,
    definition::{self, Definition, MAX_MISTAKES, Strategy},
    functions, lints,
    list::PriceList,
    sample_inputs::SampleInputs,
};
use crate::{definition::Mistake, money::TaxRate, zone::Zones};

const MAX_RULES: usize = 500;
/// Maximum length of a definition in bytes.
const MAX_LENGTH: usize = 1024 * 1024;
/// Maximum volume of a package, so that the total of a delivery is exact in a `double`.
const MAX_VOLUME: i64 = 1_000_000_000;
/// Maximum length of the name of a rule or package, in characters.
const MAX_NAME_LENGTH: usize = 255;
/// Maximum length of a condition's text in the explanation of a price, in characters.
const MAX_CONDITION_TEXT_LENGTH: usize = 200;
const DEFAULT_QUOTE_EXPIRY: SignedDuration = SignedDuration::from_mins(15);
const MAX_QUOTE_EXPIRY: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Stack for parsing conditions at the maximum nesting. An unoptimised build needs several hundred
/// kilobytes per level, in total more than the default stack. Unused stack takes no memory.
const STACK_BYTES: usize = 64 * 1024 * 1024;

impl PriceList {
    /// Parses and checks a definition (TOML), and returns all its errors.
    pub fn parse(text: &str, zones: &Zones) -> Result<Self, Vec<Mistake>> {
        Self::parse_in(None, text, zones)
    }

    /// As [`PriceList::parse`]. A list in another currency than that of the store, if it is given,
    /// is an error.
    pub fn parse_in(
        store_currency: Option<Currency>,
        text: &str,
        zones: &Zones,
    ) -> Result<Self, Vec<Mistake>> {
        price_list(text, zones, store_currency)
    }
}

fn price_list(
    text: &str,
    zones: &Zones,
    store_currency: Option<Currency>,
) -> Result<PriceList, Vec<Mistake>> {
    if text.len() > MAX_LENGTH {
        let message = format!(
            "a price list is at most {MAX_LENGTH} bytes long, this one {}",
            text.len()
        );
        return Err(vec![Mistake::at(text, 0..0, message)]);
    }
    let (definition, mistakes) = Definition::read(text);
    let parsed = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let parsing = thread.spawn_scoped(scope, || {
            Parser::new(text, zones, store_currency, mistakes).price_list(definition)
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

struct Parser<'a> {
    text: &'a str,
    zones: &'a Zones,
    /// The currency that the list must have.
    store_currency: Option<Currency>,
    env: Arc<Env>,
    mistakes: Vec<Mistake>,
}

impl<'a> Parser<'a> {
    fn new(
        text: &'a str,
        zones: &'a Zones,
        store_currency: Option<Currency>,
        mistakes: Vec<Mistake>,
    ) -> Self {
        Self {
            text,
            zones,
            store_currency,
            // Macros are disabled, so that conditions cannot loop.
            env: Arc::new(Env::default().with_stdlib()),
            mistakes,
        }
    }

    fn price_list(mut self, definition: Definition) -> Result<PriceList, Vec<Mistake>> {
        let currency = definition
            .currency
            .and_then(|currency| self.currency(&currency));
        let tax_rate = definition.tax_rate.and_then(|rate| self.tax_rate(&rate));
        let quote_expiry = self.quote_expiry(definition.quote_expiry.as_ref());
        let volumes = self.volumes(definition.packages.as_ref());
        let packages: Option<BTreeSet<String>> = definition
            .packages
            .map(|packages| packages.into_keys().collect());

        // An unknown strategy must cause no further mistakes: `sum` accepts every charge.
        let strategy = definition.strategy.unwrap_or(Strategy::Sum);
        if definition.rules.is_empty() && self.mistakes.is_empty() {
            self.mistake(0..0, "a price list needs at least one [[rule]]");
        }
        if let Some(rule) = definition.rules.get(MAX_RULES) {
            let message = format!(
                "a price list has at most {MAX_RULES} rules, this one {}",
                definition.rules.len()
            );
            self.mistake(rule.span.clone(), message);
            return Err(self.sorted_mistakes());
        }
        let is_package = |kind: &str| packages.as_ref().is_some_and(|kinds| kinds.contains(kind));
        let functions = functions::context(&self.env, self.zones);
        // Deliveries with which each condition is checked.
        let samples = SampleInputs::new(&functions, packages.as_ref(), &volumes);
        let rules: Vec<_> = definition
            .rules
            .into_iter()
            .filter_map(|rule| self.rule(rule, strategy, &is_package, &samples))
            .collect();

        let (Some(currency), Some(tax_name), Some(tax_rate), true) = (
            currency,
            definition.tax_name,
            tax_rate,
            self.mistakes.is_empty(),
        ) else {
            return Err(self.sorted_mistakes());
        };
        Ok(PriceList {
            currency,
            tax_name,
            tax_rate,
            strategy,
            quote_expiry,
            warnings: lints::warnings(&rules, strategy),
            packages,
            volumes,
            rules,
            references_zones: self.text.contains("in_zone"),
            functions,
        })
    }

    fn currency(&mut self, code: &Spanned<String>) -> Option<Currency> {
        let Some(currency) = Currency::from_code(code.get_ref()) else {
            let message = format!(
                "\"{}\" is not an ISO 4217 code such as \"EUR\"",
                code.get_ref()
            );
            self.mistake(code.span(), message);
            return None;
        };
        if let Some(store_currency) = self.store_currency
            && store_currency != currency
        {
            let (list, store) = (currency.code(), store_currency.code());
            let message = format!(
                "the store's currency is {store}, not {list}: write the list in {store}, or change \
                 the store's currency first"
            );
            self.mistake(code.span(), message);
        }
        Some(currency)
    }

    fn tax_rate(&mut self, rate: &Spanned<i64>) -> Option<TaxRate> {
        let parsed = TaxRate::from_basis_points(*rate.get_ref());
        if parsed.is_none() {
            let message = format!(
                "{} is not a tax rate: write 0 to 10000 basis points (2000 is 20 %)",
                rate.get_ref()
            );
            self.mistake(rate.span(), message);
        }
        parsed
    }

    fn quote_expiry(&mut self, text: Option<&Spanned<String>>) -> SignedDuration {
        let Some(text) = text else {
            return DEFAULT_QUOTE_EXPIRY;
        };
        let quote_expiry: Option<SignedDuration> = text.get_ref().parse().ok();
        quote_expiry
            .filter(|quote_expiry| quote_expiry.is_positive() && *quote_expiry <= MAX_QUOTE_EXPIRY)
            .unwrap_or_else(|| {
                let message = format!(
                    "\"{}\" is not a duration such as \"15 minutes\", at most 7 days",
                    text.get_ref()
                );
                self.mistake(text.span(), message);
                DEFAULT_QUOTE_EXPIRY
            })
    }

    fn volumes(
        &mut self,
        packages: Option<&BTreeMap<String, Option<Spanned<i64>>>>,
    ) -> BTreeMap<String, i64> {
        let mut volumes = BTreeMap::new();
        for (kind, volume) in packages.into_iter().flatten() {
            if !is_valid_name(kind) {
                self.mistake(
                    0..0,
                    format!("a package needs a name of 1 to {MAX_NAME_LENGTH} characters"),
                );
            }
            let Some(volume) = volume else {
                continue;
            };
            if !(0..=MAX_VOLUME).contains(volume.get_ref()) {
                let message = format!("a volume must be from 0 to {MAX_VOLUME}");
                self.mistake(volume.span(), message);
            }
            volumes.insert(kind.clone(), *volume.get_ref());
        }
        volumes
    }

    fn rule(
        &mut self,
        rule: definition::Rule,
        strategy: Strategy,
        is_package: &dyn Fn(&str) -> bool,
        samples: &SampleInputs<'_>,
    ) -> Option<Rule> {
        if let Some(name) = rule
            .name
            .as_ref()
            .filter(|name| !is_valid_name(name.get_ref()))
        {
            let message = format!("a rule needs a name of 1 to {MAX_NAME_LENGTH} characters");
            self.mistake(name.span(), message);
        }
        let charge = rule.price.and_then(|price| {
            Charge::from_definition(price.get_ref(), strategy, is_package)
                .map_err(|(span, message)| {
                    self.mistake(span.unwrap_or_else(|| price.span()), message);
                })
                .ok()
        });
        let condition = rule.when.and_then(|when| {
            let names = KnownNames {
                target: rule.target,
                is_package,
                is_zone: &|zone| self.zones.has(zone),
            };
            match Condition::parse(when.get_ref(), &self.env, names, samples) {
                Ok(condition) => Some((condition, condition_text(when.get_ref()))),
                Err(errors) => {
                    for error in errors {
                        let span = source_span(self.text, when.span(), &error.span);
                        self.mistake(span, error.message);
                    }
                    None
                }
            }
        });
        let (condition, condition_text) = condition?;
        Some(Rule {
            name: rule.name?.into_inner(),
            condition,
            charge: charge?,
            condition_text,
            target: rule.target,
        })
    }

    /// In the order of the text, the first ones only: they are metadata of the response.
    fn sorted_mistakes(mut self) -> Vec<Mistake> {
        self.mistakes
            .sort_by_key(|mistake| (mistake.line, mistake.column));
        self.mistakes.truncate(MAX_MISTAKES);
        self.mistakes
    }

    fn mistake(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.mistakes.push(Mistake::at(self.text, span, message));
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

/// The span in the definition of a part of a TOML string, given the span of the string literal.
/// Exact for strings without escapes; the whole literal for others.
fn source_span(text: &str, literal: Range<usize>, part: &Range<usize>) -> Range<usize> {
    let raw = &text[literal.clone()];
    let triple = raw.starts_with("\"\"\"") || raw.starts_with("'''");
    let is_plain = raw.starts_with('\'') || !raw.contains('\\');
    if !is_plain || raw.contains('\r') {
        return literal;
    }
    let first_newline = usize::from(triple && raw[3..].starts_with('\n'));
    let start = literal.start + if triple { 3 } else { 1 } + first_newline;
    start + part.start..start + part.end
}
