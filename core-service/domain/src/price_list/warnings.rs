//! Warnings about likely mistakes: gaps between bands, and rules that never match.
//! Found in rules whose conditions only compare one variable with constants.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

use super::{
    Rule,
    charge::Charge,
    definition::{Measure, Strategy, Target},
};

/// The values of a measure that a condition matches, such as a distance band: a range of whole
/// numbers, both bounds included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Band {
    low: i64,
    high: i64,
}

/// A rule whose condition is a band of one measure.
struct BandRule {
    measure: Measure,
    band: Band,
}

const ALL: Band = Band {
    low: 0,
    high: i64::MAX,
};

pub(super) fn of_rules(rules: &[Rule], strategy: Strategy) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut always_matching: Option<&Rule> = None;
    let mut earlier: Vec<BandRule> = Vec::new();
    // False after a rule that is neither a band nor always true: it may match any value.
    let mut only_bands = true;
    for rule in rules {
        let name = &rule.name;
        if let (Some(first), Strategy::First) = (always_matching, strategy) {
            warnings.push(format!(
                "\"{name}\" never matches: \"{}\" always does",
                first.name
            ));
            continue;
        }
        let has_no_subtotal = matches!(rule.charge, Charge::Percent { .. })
            && earlier.is_empty()
            && always_matching.is_none()
            && only_bands;
        if has_no_subtotal {
            warnings.push(format!(
                "\"{name}\" adds nothing: no rule before it gives an amount"
            ));
        }
        if is_true(rule.condition.expression()) {
            if !matches!(rule.charge, Charge::Percent { .. }) {
                always_matching = always_matching.or(Some(rule));
            }
            continue;
        }
        let Some((measure, band)) =
            band(rule.condition.expression()).filter(|_| rule.target == Target::Delivery)
        else {
            only_bands = false;
            continue;
        };
        if band.low > band.high {
            warnings.push(format!(
                "\"{name}\" never matches: no {} is in its bounds",
                measure.name()
            ));
            continue;
        }
        if matches!(rule.charge, Charge::Percent { .. }) {
            continue;
        }
        let same_measure = earlier.iter().filter(|other| other.measure == measure);
        let left = uncovered(band, same_measure.map(|other| other.band));
        if strategy == Strategy::First && left.is_empty() {
            warnings.push(format!(
                "\"{name}\" never matches: earlier rules match every {} in its bounds",
                measure.name()
            ));
        }
        earlier.push(BandRule { measure, band });
    }
    if always_matching.is_none() && only_bands {
        warnings.extend(gap_warnings(&earlier));
    }
    warnings
}

/// Warns of values without a price, below or between the bands of a measure. Values above all
/// bands get no warning: such a limit is usually intended.
fn gap_warnings(rules: &[BandRule]) -> Vec<String> {
    let Some(first) = rules.first() else {
        return Vec::new();
    };
    if rules.iter().any(|rule| rule.measure != first.measure) {
        return Vec::new();
    }
    uncovered(ALL, rules.iter().map(|rule| rule.band))
        .into_iter()
        .filter(|gap| gap.high != i64::MAX)
        .map(|gap| format!("no rule has a price for {} {gap}", first.measure.name()))
        .collect()
}

/// The parts of a band not covered by others.
fn uncovered(band: Band, others: impl Iterator<Item = Band>) -> Vec<Band> {
    let mut others: Vec<_> = others.collect();
    others.sort_unstable();
    let mut gaps = Vec::new();
    let mut low = band.low;
    for other in others {
        if other.low > band.high {
            break;
        }
        if other.low > low {
            gaps.push(Band {
                low,
                high: other.low - 1,
            });
        }
        if other.high >= band.high {
            return gaps;
        }
        low = low.max(other.high + 1);
    }
    gaps.push(Band {
        low,
        high: band.high,
    });
    gaps
}

fn is_true(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(LiteralValue::Boolean(value)) if *value.inner())
}

/// The band of one measure that a conjunction of comparisons with constants describes.
fn band(expression: &Expr) -> Option<(Measure, Band)> {
    let Expr::Call(CallExpr {
        func_name, args, ..
    }) = expression
    else {
        return None;
    };
    let [left, right] = args.as_slice() else {
        return None;
    };
    if func_name == operators::LOGICAL_AND {
        let (measure, left) = band(&left.expr)?;
        let (other, right) = band(&right.expr)?;
        let both = Band {
            low: left.low.max(right.low),
            high: left.high.min(right.high),
        };
        return (measure == other).then_some((measure, both));
    }
    if let (Some(measure), Some(constant)) = (measure(left), constant(right)) {
        return Some((measure, bounds(func_name, constant)?));
    }
    let mirrored = match func_name.as_str() {
        operators::LESS => operators::GREATER,
        operators::LESS_EQUALS => operators::GREATER_EQUALS,
        operators::GREATER => operators::LESS,
        operators::GREATER_EQUALS => operators::LESS_EQUALS,
        other => other,
    };
    Some((measure(right)?, bounds(mirrored, constant(left)?)?))
}

/// The whole numbers for which a comparison with a constant is true.
#[expect(
    clippy::cast_possible_truncation,
    reason = "`as` saturates, which is correct for a bound"
)]
fn bounds(operator: &str, constant: f64) -> Option<Band> {
    let (floor, ceil) = (constant.floor() as i64, constant.ceil() as i64);
    let band = match operator {
        operators::LESS_EQUALS => Band { high: floor, ..ALL },
        operators::LESS => Band {
            high: ceil.saturating_sub(1),
            ..ALL
        },
        operators::GREATER_EQUALS => Band {
            low: ceil.max(0),
            ..ALL
        },
        operators::GREATER => Band {
            low: floor.saturating_add(1).max(0),
            ..ALL
        },
        operators::EQUALS => Band {
            low: ceil,
            high: floor,
        },
        _ => return None,
    };
    Some(band)
}

fn measure(expression: &IdedExpr) -> Option<Measure> {
    let Expr::Ident(name) = &expression.expr else {
        return None;
    };
    Measure::ALL
        .into_iter()
        .find(|measure| measure.name() == name)
}

fn constant(expression: &IdedExpr) -> Option<f64> {
    match &expression.expr {
        Expr::Literal(LiteralValue::Double(value)) => Some(*value.inner()),
        _ => None,
    }
}

impl std::fmt::Display for Band {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.low, self.high) {
            (low, high) if low == high => write!(f, "{low}"),
            (low, i64::MAX) => write!(f, "from {low}"),
            (low, high) => write!(f, "from {low} to {high}"),
        }
    }
}
