//! The condition of a rule, in CEL. Parsing checks it with sample deliveries.

use cel::{
    Context, ExecutionError, Value,
    common::ast::{Expr, IdedExpr},
};

use super::{
    check::{Checker, ConditionReader},
    definition::Target,
};
use crate::definition::MistakeInString;

/// A checked condition: all names are known, and its value for the sample deliveries is
/// boolean.
#[derive(Clone, Debug)]
pub(super) struct Condition(IdedExpr);

/// Maximum length of a condition in bytes.
const MAX_LENGTH: usize = 4096;
/// Maximum nesting of brackets, where each `?` counts as a bracket that is never closed. The
/// parser's stack grows fast with it.
const MAX_NESTING: usize = 12;
/// Maximum number of operator characters, opening brackets and `?` in a sequence that `&`, `|` and
/// `,` end. Limits how deep operators nest to the left, as in `1 + 1 + 1`.
const MAX_CHAIN: usize = 64;
/// Maximum depth of the parsed expression.
const MAX_DEPTH: usize = 32;
/// Limit of the parser's recursion; never reached within [`MAX_NESTING`].
const MAX_RECURSION: u16 = 64;
/// How the parser's messages about the grammar begin.
const SYNTAX_ERROR: &str = "Syntax error: ";
const TOO_DEEP: &str = "the condition is nested too deeply or too long; split the rule";

impl Condition {
    /// Parses and checks a condition. Needs a stack of `parse::STACK_BYTES`.
    pub(super) fn parse(
        text: &str,
        target: Target,
        reader: &ConditionReader<'_>,
    ) -> Result<Self, Vec<MistakeInString>> {
        check_text(text).map_err(|error| vec![error])?;
        let parser = reader.env.parser().max_recursion_depth(MAX_RECURSION);
        let (mut expression, source) = parser
            .parse_with_source_info(text)
            .map_err(|errors| vec![syntax_error(text, &errors)])?;
        if depth(&expression) > MAX_DEPTH {
            return Err(vec![MistakeInString::at(0, TOO_DEEP)]);
        }

        let mut checker = Checker {
            source: &source,
            reader,
            target,
            mistakes: Vec::new(),
        };
        checker.check_expression(&mut expression);
        if checker.mistakes.is_empty() {
            checker.check_is_boolean(&expression);
        }
        if checker.mistakes.is_empty() {
            Ok(Self(expression))
        } else {
            Err(checker.mistakes)
        }
    }

    /// The value for a delivery, or why it has none.
    pub(super) fn evaluate(&self, context: &Context<'_, '_>) -> Result<bool, String> {
        let error = match context.resolve(&self.0) {
            Ok(Value::Bool(value)) => return Ok(value),
            Ok(other) => ExecutionError::UnexpectedType {
                got: format!("{:?}", other.type_of()),
                want: "bool".into(),
            },
            Err(ExecutionError::UndeclaredReference(name) | ExecutionError::NoSuchKey(name)) => {
                return Err(format!("no {name} is given"));
            }
            Err(error) => error,
        };
        Err(error.to_string())
    }

    pub(super) fn expression(&self) -> &Expr {
        &self.0.expr
    }
}

/// Checks a condition before it is parsed: its length and strings, and its nesting, so that it
/// doesn't exhaust the parser's stack.
fn check_text(text: &str) -> Result<(), MistakeInString> {
    if text.trim().is_empty() {
        return Err(MistakeInString::at(
            0,
            "the condition is empty; write \"true\" for a rule that always matches",
        ));
    }
    if text.len() > MAX_LENGTH {
        let message = format!(
            "a condition is at most {MAX_LENGTH} bytes long, this one {}",
            text.len()
        );
        return Err(MistakeInString::at(0, message));
    }
    if text.contains(['\\']) || text.contains("\'\'\'") || text.contains("\"\"\"") {
        let message = "write strings in single or double quotes, without backslashes";
        return Err(MistakeInString::at(0, message));
    }
    let (mut nesting, mut chain, mut quote) = (0_usize, 0_usize, None);
    for (position, c) in text.char_indices() {
        match (quote, c) {
            (Some((open, _)), c) if c == open => quote = None,
            (Some((_, start)), '\n' | '\r') => return Err(unclosed(start)),
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
            return Err(MistakeInString::at(position, TOO_DEEP));
        }
    }
    quote.map_or(Ok(()), |(_, start)| Err(unclosed(start)))
}

fn unclosed(start: usize) -> MistakeInString {
    MistakeInString::at(
        start,
        "the string that starts here is not closed on the same line",
    )
}

/// The first error of the parser, shortened.
fn syntax_error(text: &str, errors: &cel::ParseErrors) -> MistakeInString {
    // Other errors, even at earlier positions, are consequences of a syntax error.
    let is_syntax_error = |error: &&cel::ParseError| error.msg.starts_with(SYNTAX_ERROR);
    let first_syntax_error = errors.errors.iter().find(is_syntax_error);
    let Some(error) = first_syntax_error.or(errors.errors.first()) else {
        return MistakeInString::at(0, "this is not a condition");
    };
    let without_prefix = error.msg.trim_start_matches(SYNTAX_ERROR);
    let mut parts = without_prefix.split(" expecting {");
    let problem = parts.next().unwrap_or(without_prefix);
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
    let message = match problem.split(" expecting ").next() {
        Some(start) if start.ends_with("input '<EOF>'") => "the text ends too early".to_owned(),
        _ => problem
            .replace("'<EOF>'", "the end")
            .replace("<EOF>", "the end"),
    };
    MistakeInString::at(start, format!("this is not a condition: {message}"))
}

fn depth(expression: &IdedExpr) -> usize {
    children(expression)
        .into_iter()
        .map(depth)
        .max()
        .unwrap_or(0)
        + 1
}

/// The parts of an expression; none for a literal, a variable, and the kinds of expressions that
/// [`Checker`] rejects.
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
