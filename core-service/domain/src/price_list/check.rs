//! The check of a condition's every name and part, and its rewriting to doubles.

use cel::{
    Context, ExecutionError, Value,
    common::{
        ast::{CallExpr, Expr, IdedExpr, LiteralValue, SourceInfo, operators},
        types::CelDouble,
    },
};

use super::{
    condition::{Fault, Names},
    definition::Target,
    variables::{
        ADDRESS_FIELDS, FUNCTIONS, TASK, TASK_FIELDS, TASKS, TEXT_METHODS, TIME_METHODS, VARIABLES,
    },
};

/// The check of one condition, and its rewriting: every number becomes a double.
pub(super) struct Check<'a> {
    pub(super) text: &'a str,
    pub(super) source: &'a SourceInfo,
    pub(super) names: Names<'a>,
    pub(super) faults: Vec<Fault>,
}

impl Check<'_> {
    /// Checks names, fields and functions, and rewrites numbers, in an expression and its parts.
    pub(super) fn expression(&mut self, expression: &mut IdedExpr) {
        let id = expression.id;
        let mut is_count = false;
        match &mut expression.expr {
            Expr::Literal(LiteralValue::Int(number)) => {
                let number = *number.inner();
                self.double(id, &mut expression.expr, i128::from(number));
            }
            Expr::Literal(LiteralValue::UInt(number)) => {
                let number = *number.inner();
                self.double(id, &mut expression.expr, i128::from(number));
            }
            Expr::Literal(LiteralValue::Bytes(_)) => self.fault(id, "bytes mean nothing here"),
            Expr::Literal(_) => {}
            Expr::Ident(name) => {
                let name = name.clone();
                self.variable(id, &name);
            }
            Expr::Select(select) => {
                if let Some(fault) = self.field(&select.operand, &select.field) {
                    self.fault(id, fault);
                }
                self.expression(&mut select.operand);
            }
            Expr::Call(call) => {
                self.call(id, call);
                is_count =
                    TIME_METHODS.contains(&call.func_name.as_str()) || call.func_name == "size";
            }
            Expr::List(list) => list
                .elements
                .iter_mut()
                .for_each(|element| self.expression(element)),
            Expr::Comprehension(_) | Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => {
                self.fault(id, "maps, messages and macros mean nothing here");
            }
        }
        if is_count {
            let counted = std::mem::take(expression);
            *expression = IdedExpr {
                id,
                expr: Expr::Call(CallExpr {
                    func_name: "double".into(),
                    target: None,
                    args: vec![counted],
                }),
            };
        }
    }

    fn double(&mut self, id: u64, expression: &mut Expr, number: i128) {
        if number.unsigned_abs() > 1 << f64::MANTISSA_DIGITS {
            self.fault(id, "the number is too large");
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "just checked")]
        let double = CelDouble::from(number as f64);
        *expression = Expr::Literal(LiteralValue::Double(double));
    }

    fn variable(&mut self, id: u64, name: &str) {
        if !VARIABLES.contains(&name) {
            let known = VARIABLES.join(", ");
            self.fault(
                id,
                format!("unknown variable \"{name}\"; there are {known}"),
            );
        } else if name == TASK && self.names.target == Target::Delivery {
            self.fault(id, "\"task\" is known in rules with for = \"task\" only");
        }
    }

    /// What is wrong with selecting a field.
    fn field(&self, operand: &IdedExpr, field: &str) -> Option<String> {
        let (what, fields) = match &operand.expr {
            Expr::Ident(name) if name == "packages" => return self.package(field),
            Expr::Ident(name) if TASKS.contains(&name.as_str()) => ("a task", TASK_FIELDS),
            Expr::Select(inner) if inner.field == "address" => ("an address", ADDRESS_FIELDS),
            // Said about the variable itself.
            Expr::Ident(name) if !VARIABLES.contains(&name.as_str()) => return None,
            _ => return Some(format!("there is no \"{field}\" here")),
        };
        (!fields.contains(&field))
            .then(|| format!("{what} has no \"{field}\"; it has {}", fields.join(", ")))
    }

    fn call(&mut self, id: u64, call: &mut CallExpr) {
        let arguments = call.args.len();
        match (call.func_name.as_str(), &call.target) {
            (operators::MODULO, _) => self.fault(id, "% means nothing here; use floor"),
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
            (operators::INDEX, _) => self.package_in(id, &call.args[0], &call.args[1]),
            (operators::IN, _) => self.package_in(id, &call.args[1], &call.args[0]),
            ("count", None) if arguments == 2 => match text_of(&call.args[1]) {
                Some(kind) => self.fault_if(call.args[1].id, self.package(kind)),
                None => self.fault(id, "count needs the package's name as a text"),
            },
            ("in_zone", None) if arguments == 2 => match text_of(&call.args[1]) {
                Some(zone) if (self.names.zones)(zone) => {}
                Some(zone) => self.fault(call.args[1].id, format!("unknown zone \"{zone}\"")),
                None => self.fault(id, "in_zone needs the zone's name as a text"),
            },
            (name @ ("count" | "in_zone"), None) => {
                self.fault(id, format!("{name} takes two arguments"));
            }
            (name, None) if FUNCTIONS.contains(&name) => {
                if arguments != 1 {
                    self.fault(id, format!("{name} takes one argument"));
                }
            }
            (name, Some(_)) if TEXT_METHODS.contains(&name) || TIME_METHODS.contains(&name) => {}
            (name, target) => {
                let known = match target {
                    None => FUNCTIONS.join(", "),
                    Some(_) => [TEXT_METHODS, TIME_METHODS].concat().join(", "),
                };
                self.fault(
                    id,
                    format!("unknown function \"{name}\"; here are known {known}"),
                );
                return;
            }
        }
        for part in call.target.as_deref_mut().into_iter().chain(&mut call.args) {
            self.expression(part);
        }
    }

    /// Checks the name in `packages["XL"]` and `"XL" in packages`.
    fn package_in(&mut self, id: u64, container: &IdedExpr, kind: &IdedExpr) {
        if container.expr != Expr::Ident("packages".into()) {
            return;
        }
        match text_of(kind) {
            Some(text) => self.fault_if(kind.id, self.package(text)),
            None => self.fault(id, "packages need the package's name as a text"),
        }
    }

    fn package(&self, kind: &str) -> Option<String> {
        (!(self.names.packages)(kind))
            .then(|| format!("unknown package \"{kind}\": add it to [packages]"))
    }

    /// Tries every part that stands for true or false by itself: `a || b` is true for most
    /// deliveries whatever is wrong with `b`.
    pub(super) fn is_boolean(&mut self, expression: &IdedExpr, contexts: &[Context<'_, '_>]) {
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
                    .for_each(|part| self.is_boolean(part, contexts));
                return;
            }
        }
        for context in contexts {
            let fault = match context.resolve(expression) {
                // A value that this delivery does not have.
                Ok(Value::Bool(_))
                | Err(
                    ExecutionError::UndeclaredReference(_)
                    | ExecutionError::NoSuchKey(_)
                    | ExecutionError::IndexOutOfBounds(_),
                ) => continue,
                Ok(_) => "this is not true or false; compare it with something".to_owned(),
                Err(error) => format!("this can't be evaluated: {error}"),
            };
            self.fault(expression.id, fault);
            return;
        }
    }

    fn fault(&mut self, id: u64, message: impl Into<String>) {
        let (start, end) = self.source.offset_for(id).unwrap_or_default();
        let (start, end) = (start as usize, end as usize);
        self.faults.push(Fault {
            span: start.min(self.text.len())..end.clamp(start, self.text.len().max(start)),
            message: message.into(),
        });
    }

    fn fault_if(&mut self, id: u64, message: Option<String>) {
        if let Some(message) = message {
            self.fault(id, message);
        }
    }
}

fn text_of(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}
