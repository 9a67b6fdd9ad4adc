//! The condition of a rule: CEL, checked before it ever meets a delivery.

use std::ops::Range;

use cel::{
    Context, Env, ExecutionError, Value,
    common::ast::{Expr, IdedExpr},
};

use super::{check::Check, definition::Target, probe::Probes};

/// A checked condition: its every name is known and, as far as tried, it is true or false.
#[derive(Clone, Debug)]
pub(super) struct Condition(IdedExpr);

/// What a condition may refer to.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) target: Target,
    pub(super) packages: &'a dyn Fn(&str) -> bool,
    pub(super) zones: &'a dyn Fn(&str) -> bool,
}

/// Something wrong at some bytes of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) span: Range<usize>,
    pub(super) message: String,
}

/// Why a condition can't be told.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum Unknown {
    #[error("no {0} is given")]
    Missing(String),
    #[error("{0}")]
    Failed(ExecutionError),
}

/// Bytes of a condition.
pub(super) const MAX_LENGTH: usize = 4096;
/// Brackets within brackets. The parser's stack grows fast with them.
const MAX_NESTING: usize = 12;
/// Operators in a row that nest to the left, as in `1 + 1 + 1`.
const MAX_CHAIN: usize = 64;
/// Levels of the finished expression.
const MAX_DEPTH: usize = 32;
/// Levels of the parser's own recursion, more than [`MAX_NESTING`] needs.
const MAX_RECURSION: u16 = 64;
const TOO_DEEP: &str = "the condition is nested too deep; split the rule";

impl Condition {
    /// Reads and checks a condition. Needs the stack that `parse::STACK_BYTES` speaks of.
    pub(super) fn parse(
        text: &str,
        env: &Env,
        names: Names<'_>,
        probes: &Probes<'_>,
    ) -> Result<Self, Vec<Fault>> {
        check_size(text).map_err(|fault| vec![fault])?;
        let parser = env.parser().max_recursion_depth(MAX_RECURSION);
        let (mut expression, source) = parser
            .parse_with_source_info(text)
            .map_err(|errors| vec![syntax_fault(text, &errors)])?;
        if depth(&expression) > MAX_DEPTH {
            return Err(vec![Fault::whole(text, TOO_DEEP)]);
        }

        let mut check = Check {
            text,
            source: &source,
            names,
            faults: Vec::new(),
        };
        check.expression(&mut expression);
        if check.faults.is_empty() {
            probes.scopes(names.target, |scopes| check.is_boolean(&expression, scopes));
        }
        if check.faults.is_empty() {
            Ok(Self(expression))
        } else {
            Err(check.faults)
        }
    }

    /// Whether it holds.
    pub(super) fn holds(&self, context: &Context<'_, '_>) -> Result<bool, Unknown> {
        match context.resolve(&self.0) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(Unknown::Failed(ExecutionError::UnexpectedType {
                got: format!("{:?}", other.type_of()),
                want: "bool".into(),
            })),
            Err(ExecutionError::UndeclaredReference(name) | ExecutionError::NoSuchKey(name)) => {
                Err(Unknown::Missing(name.to_string()))
            }
            Err(error) => Err(Unknown::Failed(error)),
        }
    }

    pub(super) fn expression(&self) -> &Expr {
        &self.0.expr
    }
}

impl Fault {
    fn whole(text: &str, message: impl Into<String>) -> Self {
        Self {
            span: 0..text.len(),
            message: message.into(),
        }
    }
}

/// Refuses what would take the parser too much stack, before it sees it.
fn check_size(text: &str) -> Result<(), Fault> {
    if text.trim().is_empty() {
        return Err(Fault::whole(
            text,
            "a condition is missing; \"true\" always holds",
        ));
    }
    if text.len() > MAX_LENGTH {
        let message = format!(
            "a condition is at most {MAX_LENGTH} bytes long, this one {}",
            text.len()
        );
        return Err(Fault::whole(text, message));
    }
    if text.contains(['\\']) || text.contains("\'\'\'") || text.contains("\"\"\"") {
        let message = "texts are written in single or double quotes, without backslashes";
        return Err(Fault::whole(text, message));
    }
    let (mut nesting, mut chain, mut quote) = (0_usize, 0_usize, None);
    for (position, c) in text.char_indices() {
        match (quote, c) {
            (Some((open, _)), c) if c == open => quote = None,
            (Some((_, start)), '\n' | '\r') => return Err(unclosed(text, start)),
            (Some(_), _) => continue,
            (None, '"' | '\'') => quote = Some((c, position)),
            (None, '(' | '[' | '{' | '?') => {
                nesting += 1;
                chain += 1;
            }
            (None, ')' | ']' | '}') => nesting = nesting.saturating_sub(1),
            (None, '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' | '.') => chain += 1,
            (None, '&' | '|' | ',') => chain = 0,
            (None, _) => {}
        }
        if nesting > MAX_NESTING || chain > MAX_CHAIN {
            return Err(Fault {
                span: position..position + c.len_utf8(),
                message: TOO_DEEP.into(),
            });
        }
    }
    quote.map_or(Ok(()), |(_, start)| Err(unclosed(text, start)))
}

fn unclosed(text: &str, start: usize) -> Fault {
    Fault {
        span: start..text.len(),
        message: "the text that begins here is not closed in its line".into(),
    }
}

/// The first error of the parser, in fewer words.
fn syntax_fault(text: &str, errors: &cel::ParseErrors) -> Fault {
    let Some(error) = errors.errors.first() else {
        return Fault::whole(text, "this is not a condition");
    };
    let message = error.msg.trim_start_matches("Syntax error: ");
    let message = message.split(" expecting {").next().unwrap_or(message);
    let (line, column) = (
        error.pos.0.max(1).unsigned_abs(),
        error.pos.1.max(1).unsigned_abs(),
    );
    let line_start: usize = text
        .split_inclusive('\n')
        .take(line - 1)
        .map(str::len)
        .sum();
    let in_line = text[line_start..].char_indices().nth(column - 1);
    let start = in_line.map_or(text.len(), |(offset, _)| line_start + offset);
    Fault {
        span: start..start,
        message: format!(
            "this is not a condition: {}",
            message.replace("'<EOF>'", "the end")
        ),
    }
}

fn depth(expression: &IdedExpr) -> usize {
    children(expression)
        .into_iter()
        .map(depth)
        .max()
        .unwrap_or(0)
        + 1
}

/// The parts of an expression; none of what [`Check`] refuses anyway.
fn children(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(call) => call
            .target
            .as_deref()
            .into_iter()
            .chain(&call.args)
            .collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        _ => Vec::new(),
    }
}
