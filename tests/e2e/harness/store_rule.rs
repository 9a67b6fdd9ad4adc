//! Which tables a statement uses, and whether it names the store of their rows: by a value, or by
//! the `store_id` of another table that names it.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    ops::ControlFlow,
};

use regex::Regex;
use sqlparser::{
    ast::{
        BinaryOperator, Expr, FromTable, InTarget, JoinConstraint, JoinOperator, ObjectName,
        Select, Statement, TableFactor, TableObject, TableWithJoins, UpdateTableFromKind, Visit,
        Visitor,
    },
    dialect::PostgreSqlDialect,
    parser::Parser,
};

const STORE: &str = "store_id";

/// One use of a table in a statement or one of its subqueries.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    /// `SELECT`, `INSERT`, `UPDATE` or `DELETE`.
    pub(crate) verb: &'static str,
    pub(crate) table: String,
    pub(crate) names_store: bool,
}

/// The uses of these tables in a statement, as `pg_stat_statements` records it.
pub(crate) fn uses(sql: &str, tables: &BTreeSet<String>) -> BTreeSet<Use> {
    if !tables.iter().any(|table| sql.contains(table)) {
        return BTreeSet::new();
    }
    // Two locks that the parser does not know, and a field whose name is recorded as a parameter.
    let sql = sql.replace("FOR NO KEY UPDATE", "FOR UPDATE");
    let sql = sql.replace("FOR KEY SHARE", "FOR SHARE");
    let sql = Regex::new(r"extract\(\$\d+ from")
        .unwrap()
        .replace_all(&sql, "extract(epoch from");
    let statements = Parser::parse_sql(&PostgreSqlDialect {}, &sql);
    uses_in(
        &statements.unwrap_or_else(|error| panic!("{error}: {sql}")),
        tables,
    )
}

fn uses_in(node: &impl Visit, tables: &BTreeSet<String>) -> BTreeSet<Use> {
    let mut found = Found {
        tables,
        uses: BTreeSet::new(),
    };
    let _ = node.visit(&mut found);
    found.uses
}

struct Found<'a> {
    tables: &'a BTreeSet<String>,
    uses: BTreeSet<Use>,
}

impl Visitor for Found<'_> {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Infallible> {
        self.add("SELECT", &select.from, select.selection.as_ref());
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<Infallible> {
        match statement {
            Statement::Update(update) => {
                let from = match &update.from {
                    Some(UpdateTableFromKind::AfterSet(from)) => from.as_slice(),
                    _ => &[],
                };
                let from = [std::slice::from_ref(&update.table), from].concat();
                self.add("UPDATE", &from, update.selection.as_ref());
            }
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                let using = delete.using.as_deref().unwrap_or_default();
                self.add("DELETE", &[from, using].concat(), delete.selection.as_ref());
            }
            Statement::Insert(insert) => {
                if let TableObject::TableName(table) = &insert.table {
                    let table = unquoted(table);
                    let mut columns = insert.columns.iter().map(unquoted);
                    self.insert("INSERT", table, columns.any(|column| column == STORE));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Found<'_> {
    fn insert(&mut self, verb: &'static str, table: String, names_store: bool) {
        if self.tables.contains(&table) {
            self.uses.insert(Use {
                verb,
                table,
                names_store,
            });
        }
    }

    fn add(&mut self, verb: &'static str, from: &[TableWithJoins], selection: Option<&Expr>) {
        let mut conditions: Vec<_> = selection.into_iter().collect();
        // By their names in the statement.
        let mut tables = BTreeMap::new();
        for TableWithJoins { relation, joins } in from {
            let joined = joins.iter().map(|join| &join.relation);
            for factor in std::iter::once(relation).chain(joined) {
                if let TableFactor::Table { name, alias, .. } = factor
                    && self.tables.contains(&unquoted(name))
                {
                    let table = unquoted(name);
                    let alias = alias.as_ref().map(|alias| alias.name.value.clone());
                    tables.insert(alias.unwrap_or_else(|| table.clone()), table);
                }
            }
            conditions.extend(joins.iter().filter_map(|join| match &join.join_operator {
                JoinOperator::Join(JoinConstraint::On(on))
                | JoinOperator::Inner(JoinConstraint::On(on))
                | JoinOperator::Left(JoinConstraint::On(on))
                | JoinOperator::LeftOuter(JoinConstraint::On(on)) => Some(on),
                _ => None,
            }));
        }
        let mut scope = Scope {
            tables: self.tables,
            without: tables.keys().cloned().collect(),
        };
        let names_store = |name: &str, scope: &Scope| {
            let mut conditions = conditions.iter();
            conditions.any(|condition| scope.names_store(condition, name))
        };
        while let Some(name) = {
            scope
                .without
                .iter()
                .find(|name| names_store(name, &scope))
                .cloned()
        } {
            scope.without.remove(&name);
        }
        for (name, table) in tables {
            self.insert(verb, table, !scope.without.contains(&name));
        }
    }
}

/// The tables of one `FROM`.
struct Scope<'a> {
    tables: &'a BTreeSet<String>,
    /// Those for which no condition is found yet, by their names in the statement.
    without: BTreeSet<String>,
}

impl Scope<'_> {
    /// Whether a condition holds for rows of one store of a table only, of listed stores, or of
    /// those that a subquery of these tables finds. An equality with a table without a store does
    /// not count.
    fn names_store(&self, condition: &Expr, table: &str) -> bool {
        match condition {
            Expr::Nested(condition) => self.names_store(condition, table),
            Expr::BinaryOp { left, op, right } => {
                let of_both = || [left, right].map(|side| self.names_store(side, table));
                let is_named = |this: &Expr, other: &Expr| {
                    let mut without = self.without.iter();
                    is_store(this, table) && !without.any(|table| is_store(other, table))
                };
                match op {
                    BinaryOperator::And => of_both().contains(&true),
                    BinaryOperator::Or => !of_both().contains(&false),
                    BinaryOperator::Eq => is_named(left, right) || is_named(right, left),
                    _ => false,
                }
            }
            Expr::In {
                expr,
                target,
                negated: false,
                ..
            } if is_store(expr, table) => match target {
                InTarget::List(_) => true,
                InTarget::Subquery(query) => !uses_in(query, self.tables).is_empty(),
                _ => false,
            },
            _ => false,
        }
    }
}

/// Whether an expression is the store of a table, or a row that contains it. A column without a
/// table is of the only one that has it.
fn is_store(expression: &Expr, table: &str) -> bool {
    match expression {
        Expr::Nested(expression) => is_store(expression, table),
        Expr::Tuple(parts) => parts.iter().any(|part| is_store(part, table)),
        Expr::Identifier(column) => column.value == STORE,
        Expr::CompoundIdentifier(path) => {
            path.len() == 2 && path[0].value == table && path[1].value == STORE
        }
        _ => false,
    }
}

fn unquoted(name: &ObjectName) -> String {
    let last = name.0.last().and_then(|part| part.as_ident());
    last.map(|name| name.value.clone()).unwrap_or_default()
}
