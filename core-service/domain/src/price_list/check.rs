//! Checks the names, fields and functions of a condition, and converts its numbers to doubles.

use cel::{
    Context, Env, ExecutionError, Value,
    common::{
        ast::{CallExpr, Expr, IdedExpr, LiteralValue, SourceInfo, operators},
        types::CelDouble,
    },
};

use super::{
    definition::{Packages, Target, unknown_package},
    variables::{
        ADDRESS_FIELDS, FUNCTIONS, TASK, TASK_FIELDS, TASKS, TEXT_METHODS, TIME_METHODS, VARIABLES,
        has,
    },
};
use crate::{definition::MistakeInString, zone::Zones};

/// What conditions are read and checked with.
pub(super) struct ConditionReader<'a> {
    pub(super) env: &'a Env,
    pub(super) zones: &'a Zones,
    pub(super) packages: Option<&'a Packages>,
    /// The variables of the sample deliveries with which each condition is evaluated, to check it.
    pub(super) sample_contexts: &'a [Context<'a, 'a>],
}

/// Checks one condition and collects its mistakes.
pub(super) struct Checker<'a, 'r> {
    pub(super) source: &'a SourceInfo,
    /// Knows the packages and the zones.
    pub(super) reader: &'a ConditionReader<'r>,
    /// Decides whether `task` is one of the variables.
    pub(super) target: Target,
    pub(super) mistakes: Vec<MistakeInString>,
}

impl Checker<'_, '_> {
    /// Checks an expression and its parts, and converts their numbers to doubles.
    pub(super) fn check_expression(&mut self, expression: &mut IdedExpr) {
        let id = expression.id;
        let mut returns_integer = false;
        match &mut expression.expr {
            Expr::Literal(LiteralValue::Int(number)) => {
                let number = i128::from(*number.inner());
                self.convert_to_double(id, &mut expression.expr, number);
            }
            Expr::Literal(LiteralValue::UInt(number)) => {
                let number = i128::from(*number.inner());
                self.convert_to_double(id, &mut expression.expr, number);
            }
            Expr::Literal(LiteralValue::Bytes(_)) => self.error(id, "bytes are not supported"),
            Expr::Literal(_) => {}
            Expr::Ident(name) => {
                let name = name.clone();
                self.check_variable(id, &name);
            }
            Expr::Select(select) => {
                if let Some(error) = self.field_error(&select.operand, &select.field) {
                    self.error(id, error);
                }
                self.check_expression(&mut select.operand);
            }
            Expr::Call(call) => {
                self.check_call(id, call);
                returns_integer = has(TIME_METHODS, &call.func_name) || call.func_name == "size";
            }
            Expr::List(list) => list
                .elements
                .iter_mut()
                .for_each(|element| self.check_expression(element)),
            Expr::Comprehension(_) | Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => {
                self.error(id, "maps, messages and macros are not supported");
            }
        }
        if returns_integer {
            let call = std::mem::take(expression);
            *expression = IdedExpr {
                id,
                expr: Expr::Call(CallExpr {
                    func_name: "double".into(),
                    target: None,
                    args: vec![call],
                }),
            };
        }
    }

    fn convert_to_double(&mut self, id: u64, expression: &mut Expr, number: i128) {
        if number.unsigned_abs() > 1 << f64::MANTISSA_DIGITS {
            self.error(id, "the number is too large");
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "the size is checked above")]
        let double = CelDouble::from(number as f64);
        *expression = Expr::Literal(LiteralValue::Double(double));
    }

    fn check_variable(&mut self, id: u64, name: &str) {
        if !has(VARIABLES, name) {
            let known = listed(VARIABLES);
            self.error(
                id,
                format!("unknown variable \"{name}\"; the variables are {known}"),
            );
        } else if name == TASK && self.target == Target::Delivery {
            self.error(
                id,
                "\"task\" is available only in rules with for = \"task\"",
            );
        }
    }

    /// The error in selecting a field, if any.
    fn field_error(&self, operand: &IdedExpr, field: &str) -> Option<String> {
        let (owner, fields) = match &operand.expr {
            Expr::Ident(name) if name == "packages" => return self.package_error(field),
            Expr::Ident(name) if has(TASKS, name) => ("a task", TASK_FIELDS),
            Expr::Select(inner) if inner.field == "address" => ("an address", ADDRESS_FIELDS),
            // The unknown variable itself is reported.
            Expr::Ident(name) if !has(VARIABLES, name) => return None,
            _ => return Some(format!("this has no field \"{field}\"")),
        };
        let known = listed(fields);
        (!has(fields, field))
            .then(|| format!("{owner} has no field \"{field}\"; the fields are {known}"))
    }

    fn check_call(&mut self, id: u64, call: &mut CallExpr) {
        let arguments = call.args.len();
        match (call.func_name.as_str(), &call.target) {
            (operators::MODULO, _) => self.error(id, "% is not supported; use floor"),
            (
                operators::CONDITIONAL
                | operators::LOGICAL_AND
                | operators::LOGICAL_OR
                | operators::LOGICAL_NOT
                | operators::SUBSTRACT
                | operators::ADD
                | operators::MULTIPLY
                | operators::DIVIDE
                | operators::EQUALS
                | operators::NOT_EQUALS
                | operators::GREATER_EQUALS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::LESS
                | operators::NEGATE,
                _,
            ) => {}
            (operators::INDEX, _) => self.check_package_lookup(id, &call.args[0], &call.args[1]),
            (operators::IN, _) => self.check_package_lookup(id, &call.args[1], &call.args[0]),
            ("count", None) if arguments == 2 => match string_literal(&call.args[1]) {
                Some(kind) => self.error_if(call.args[1].id, self.package_error(kind)),
                None => self.error(id, "count needs the name of the package as a string"),
            },
            ("in_zone", None) if arguments == 2 => match string_literal(&call.args[1]) {
                Some(zone) if self.reader.zones.has(zone) => {}
                Some(zone) => self.error(call.args[1].id, format!("unknown zone \"{zone}\"")),
                None => self.error(id, "in_zone needs the name of the zone as a string"),
            },
            (name @ ("count" | "in_zone"), None) => {
                self.error(id, format!("{name} takes two arguments"));
            }
            (name, None) if has(FUNCTIONS, name) => {
                if arguments != 1 {
                    self.error(id, format!("{name} takes one argument"));
                }
            }
            (name, Some(_)) if has(TEXT_METHODS, name) || has(TIME_METHODS, name) => {}
            (name, target) => {
                let known = match target {
                    None => listed(FUNCTIONS),
                    Some(_) => listed(&format!("{TEXT_METHODS} {TIME_METHODS}")),
                };
                self.error(
                    id,
                    format!("unknown function \"{name}\"; the functions are {known}"),
                );
                return;
            }
        }
        for part in call.target.as_deref_mut().into_iter().chain(&mut call.args) {
            self.check_expression(part);
        }
    }

    /// Checks the name in `packages["XL"]` and `"XL" in packages`.
    fn check_package_lookup(&mut self, id: u64, container: &IdedExpr, kind: &IdedExpr) {
        if container.expr != Expr::Ident("packages".into()) {
            return;
        }
        match string_literal(kind) {
            Some(text) => self.error_if(kind.id, self.package_error(text)),
            None => self.error(id, "packages needs the name of the package as a string"),
        }
    }

    fn package_error(&self, kind: &str) -> Option<String> {
        unknown_package(self.reader.packages, kind)
    }

    /// Checks by evaluation that an expression is boolean. Evaluates the operands of logical
    /// operators one by one: an error in `b` does not show in `a || b` if `a` is true.
    pub(super) fn check_is_boolean(&mut self, expression: &IdedExpr) {
        if let Expr::Call(call) = &expression.expr {
            let logical = [
                operators::LOGICAL_AND,
                operators::LOGICAL_OR,
                operators::LOGICAL_NOT,
                operators::CONDITIONAL,
            ];
            if logical.contains(&call.func_name.as_str()) {
                call.args
                    .iter()
                    .for_each(|part| self.check_is_boolean(part));
                return;
            }
        }
        for context in self.reader.sample_contexts {
            let message = match context.resolve(expression) {
                // Either boolean, or a value that the sample delivery lacks.
                Ok(Value::Bool(_))
                | Err(
                    ExecutionError::UndeclaredReference(_)
                    | ExecutionError::NoSuchKey(_)
                    | ExecutionError::IndexOutOfBounds(_),
                ) => continue,
                Ok(_) => "this is not true or false; compare it with a value".to_owned(),
                Err(error) => format!("this can't be evaluated: {error}"),
            };
            self.error(expression.id, message);
            return;
        }
    }

    fn error(&mut self, id: u64, message: impl Into<String>) {
        let (start, _) = self.source.offset_for(id).unwrap_or_default();
        self.mistakes
            .push(MistakeInString::at(start as usize, message));
    }

    fn error_if(&mut self, id: u64, message: Option<String>) {
        if let Some(message) = message {
            self.error(id, message);
        }
    }
}

/// Names for a message.
fn listed(names: &str) -> String {
    names.replace(' ', ", ")
}

fn string_literal(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}
