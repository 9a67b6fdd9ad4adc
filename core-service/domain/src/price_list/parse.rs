//! From a definition to a price list, or to all its mistakes.

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
    PriceList, Rule, bands,
    charge::Charge,
    condition::{Condition, Names},
    definition::{self, Definition},
    functions,
    probe::Probes,
};
use crate::{definition::Mistake, money::TaxRate, zone::Zones};

const MAX_RULES: usize = 500;
/// Bytes of a definition.
const MAX_LENGTH: usize = 1024 * 1024;
/// Of a package: what all of a delivery have together is exact then, in a `double` too.
const MAX_VOLUME: i64 = 1_000_000_000;
/// Characters of a rule's or a package's name.
const MAX_NAME: usize = 255;
/// Characters of a condition in a calculation.
const MAX_SHOWN: usize = 200;
const DEFAULT_PROMISE: SignedDuration = SignedDuration::from_mins(15);
const LONGEST_PROMISE: SignedDuration = SignedDuration::from_hours(7 * 24);
/// What the parser of conditions may need at the nesting allowed; unoptimised, it takes some
/// hundred kilobytes a level, more than an ordinary thread has. Only what is used is ever
/// backed by memory.
const STACK_BYTES: usize = 64 * 1024 * 1024;

pub(super) fn price_list(text: &str, zones: &Zones) -> Result<PriceList, Vec<Mistake>> {
    if text.len() > MAX_LENGTH {
        let message = format!(
            "a price list is at most {MAX_LENGTH} bytes long, this one {}",
            text.len()
        );
        return Err(vec![Mistake::at(text, 0..0, message)]);
    }
    let definition: Definition =
        toml::from_str(text).map_err(|error| vec![Mistake::of_toml(text, &error)])?;
    let parsed = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let parsing =
            thread.spawn_scoped(scope, || Parser::new(text, zones).price_list(definition));
        parsing.map(|parsing| {
            parsing
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    parsed.unwrap_or_else(|error| {
        let message = format!("the conditions can't be checked just now: {error}");
        Err(vec![Mistake::at(text, 0..0, message)])
    })
}

struct Parser<'a> {
    text: &'a str,
    zones: &'a Zones,
    env: Arc<Env>,
    mistakes: Vec<Mistake>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, zones: &'a Zones) -> Self {
        Self {
            text,
            zones,
            // No macros: without them nothing loops.
            env: Arc::new(Env::default().with_stdlib()),
            mistakes: Vec::new(),
        }
    }

    fn price_list(mut self, definition: Definition) -> Result<PriceList, Vec<Mistake>> {
        let currency = self.currency(&definition.currency);
        let tax_rate = self.tax_rate(&definition.tax.rate);
        let promise = self.promise(definition.promise.as_ref());
        let volumes = self.volumes(definition.packages.as_ref());
        let packages: Option<BTreeSet<String>> = definition
            .packages
            .map(|packages| packages.into_keys().collect());

        if definition.rules.is_empty() {
            self.mistake(0..0, "a price list needs at least one [[rule]]");
        }
        if let Some(rule) = definition.rules.get(MAX_RULES) {
            let message = format!(
                "a price list has at most {MAX_RULES} rules, this one {}",
                definition.rules.len()
            );
            self.mistake(rule.name.span(), message);
            return Err(self.mistakes);
        }
        let is_package = |kind: &str| packages.as_ref().is_some_and(|kinds| kinds.contains(kind));
        let functions = functions::context(&self.env, self.zones);
        let probes = Probes::new(&functions, packages.as_ref(), &volumes);
        let rules: Vec<_> = definition
            .rules
            .into_iter()
            .filter_map(|rule| self.rule(rule, definition.strategy, &is_package, &probes))
            .collect();

        let (Some(currency), Some(tax_rate), true) = (currency, tax_rate, self.mistakes.is_empty())
        else {
            return Err(self.mistakes);
        };
        Ok(PriceList {
            currency,
            tax_name: definition.tax.name,
            tax_rate,
            strategy: definition.strategy,
            promise,
            warnings: bands::warnings(&rules, definition.strategy),
            packages,
            volumes,
            rules,
            names_zones: self.text.contains("in_zone"),
            functions,
        })
    }

    fn currency(&mut self, code: &Spanned<String>) -> Option<Currency> {
        let currency = Currency::from_code(code.get_ref());
        if currency.is_none() {
            let message = format!("\"{}\" is no ISO 4217 code such as \"EUR\"", code.get_ref());
            self.mistake(code.span(), message);
        }
        currency
    }

    fn tax_rate(&mut self, rate: &Spanned<i64>) -> Option<TaxRate> {
        let parsed = TaxRate::from_basis_points(*rate.get_ref());
        if parsed.is_none() {
            let message = format!(
                "{} is no tax rate: from 0 to 10000 basis points, 2000 is 20 %",
                rate.get_ref()
            );
            self.mistake(rate.span(), message);
        }
        parsed
    }

    fn promise(&mut self, text: Option<&Spanned<String>>) -> SignedDuration {
        let Some(text) = text else {
            return DEFAULT_PROMISE;
        };
        let promise: Option<SignedDuration> = text.get_ref().parse().ok();
        promise
            .filter(|promise| promise.is_positive() && *promise <= LONGEST_PROMISE)
            .unwrap_or_else(|| {
                let message = format!(
                    "\"{}\" is no time such as \"15 minutes\", at most 7 days",
                    text.get_ref()
                );
                self.mistake(text.span(), message);
                DEFAULT_PROMISE
            })
    }

    fn volumes(
        &mut self,
        packages: Option<&BTreeMap<String, definition::Package>>,
    ) -> BTreeMap<String, i64> {
        let mut volumes = BTreeMap::new();
        for (kind, package) in packages.into_iter().flatten() {
            if !is_name(kind) {
                self.mistake(
                    0..0,
                    format!("a package needs a name of 1 to {MAX_NAME} characters"),
                );
            }
            let Some(volume) = &package.volume else {
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
        strategy: definition::Strategy,
        is_package: &dyn Fn(&str) -> bool,
        probes: &Probes<'_>,
    ) -> Option<Rule> {
        if !is_name(rule.name.get_ref()) {
            let message = format!("a rule needs a name of 1 to {MAX_NAME} characters");
            self.mistake(rule.name.span(), message);
        }
        let charge = Charge::from_definition(rule.price.get_ref(), strategy, is_package);
        let charge = charge.map_err(|(span, message)| {
            self.mistake(span.unwrap_or_else(|| rule.price.span()), message);
        });

        let zones = self.zones;
        let names = Names {
            target: rule.target,
            packages: is_package,
            zones: &|zone| zones.has(zone),
        };
        let condition = Condition::parse(rule.when.get_ref(), &self.env, names, probes);
        let condition = condition.map_err(|faults| {
            for fault in faults {
                let span = source_span(self.text, rule.when.span(), &fault.span);
                self.mistake(span, fault.message);
            }
        });
        Some(Rule {
            name: rule.name.into_inner(),
            condition: condition.ok()?,
            charge: charge.ok()?,
            when: in_a_line(rule.when.get_ref()),
            target: rule.target,
        })
    }

    fn mistake(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.mistakes.push(Mistake::at(self.text, span, message));
    }
}

fn in_a_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn is_name(name: &str) -> bool {
    !name.trim().is_empty() && name.chars().count() <= MAX_NAME
}

/// Where a part of a TOML string's value stands in the definition, given where the string
/// stands. Exact for strings without escapes and line-ending backslashes; one that has them is
/// pointed at as a whole.
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
