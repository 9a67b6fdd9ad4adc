//! Which tables a statement uses, and whether it names the store of their rows: by a value, or by
//! the `store_id` of another distributed table whose store it names.

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

/// The tables of a schema that is split by store, in the terms of Citus.
pub(crate) struct Tables {
    /// The tables each of whose rows belongs to a store.
    pub(crate) distributed: BTreeSet<String>,
    /// The tables of which each part of the database has all rows: those of all stores.
    pub(crate) reference: BTreeSet<String>,
}

/// The uses of distributed tables in a statement, as `pg_stat_statements` records it.
pub(crate) fn uses(sql: &str, tables: &Tables) -> BTreeSet<Use> {
    if !tables.distributed.iter().any(|table| sql.contains(table)) {
        return BTreeSet::new();
    }
    // Two locks that the parser does not know, and a field whose name is recorded as a parameter.
    let sql = sql.replace("FOR NO KEY UPDATE", "FOR UPDATE");
    let sql = sql.replace("FOR KEY SHARE", "FOR SHARE");
    let sql = Regex::new(r"extract\(\$\d+ from")
        .unwrap()
        .replace_all(&sql, "extract(epoch from");
    let statements = Parser::parse_sql(&PostgreSqlDialect {}, &sql);
    let statements = statements.unwrap_or_else(|error| panic!("{error}: {sql}"));
    let mut references = References {
        tables,
        names: BTreeSet::new(),
    };
    let _ = statements.visit(&mut references);
    uses_in(&statements, tables, &references.names)
}

fn uses_in(node: &impl Visit, tables: &Tables, references: &BTreeSet<String>) -> BTreeSet<Use> {
    let mut found = Found {
        tables,
        references,
        uses: BTreeSet::new(),
    };
    let _ = node.visit(&mut found);
    found.uses
}

/// The name of a table, and its name in the statement.
fn names(factor: &TableFactor) -> Option<(String, String)> {
    let TableFactor::Table { name, alias, .. } = factor else {
        return None;
    };
    let table = unquoted(name);
    let alias = alias.as_ref().map(|alias| alias.name.value.clone());
    Some((table.clone(), alias.unwrap_or(table)))
}

/// The reference tables of a statement, by their names in it.
struct References<'a> {
    tables: &'a Tables,
    names: BTreeSet<String>,
}

impl Visitor for References<'_> {
    type Break = Infallible;

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Infallible> {
        let names = names(factor).filter(|(table, _)| self.tables.reference.contains(table));
        self.names.extend(names.map(|(_, name)| name));
        ControlFlow::Continue(())
    }
}

struct Found<'a> {
    tables: &'a Tables,
    /// The reference tables of the statement, by their names in it.
    references: &'a BTreeSet<String>,
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
        if self.tables.distributed.contains(&table) {
            self.uses.insert(Use {
                verb,
                table,
                names_store,
            });
        }
    }

    fn add(&mut self, verb: &'static str, from: &[TableWithJoins], selection: Option<&Expr>) {
        let mut scope = Scope {
            found: self,
            conditions: selection.into_iter().collect(),
            outer_conditions: Vec::new(),
            without_store: BTreeSet::new(),
        };
        // By their names in the statement.
        let mut tables = BTreeMap::new();
        for TableWithJoins { relation, joins } in from {
            tables.extend(names(relation).map(|(table, name)| (name, table)));
            for join in joins {
                let joined = names(&join.relation);
                match &join.join_operator {
                    JoinOperator::Join(JoinConstraint::On(on))
                    | JoinOperator::Inner(JoinConstraint::On(on)) => scope.conditions.push(on),
                    JoinOperator::Left(JoinConstraint::On(on))
                    | JoinOperator::LeftOuter(JoinConstraint::On(on)) => {
                        let name = joined.as_ref().map(|(_, name)| name.clone());
                        scope.outer_conditions.push((name.unwrap_or_default(), on));
                    }
                    _ => {}
                }
                tables.extend(joined.map(|(table, name)| (name, table)));
            }
        }
        tables.retain(|_, table| scope.found.tables.distributed.contains(table));
        scope.without_store = tables.keys().cloned().collect();
        // A join can name the store of one table by that of another, so each one found may help to
        // find further ones.
        while let Some(name) = scope.next_with_store() {
            scope.without_store.remove(&name);
        }
        let without_store = scope.without_store;
        for (name, table) in tables {
            self.insert(verb, table, !without_store.contains(&name));
        }
    }
}

/// The tables of one `FROM`, and the conditions on their rows.
struct Scope<'a> {
    found: &'a Found<'a>,
    conditions: Vec<&'a Expr>,
    /// Those of left joins, with the joined table. They keep the rows of the other tables.
    outer_conditions: Vec<(String, &'a Expr)>,
    /// The tables for which no condition names the store yet, by their names in the statement.
    without_store: BTreeSet<String>,
}

impl Scope<'_> {
    /// A table whose store a condition names, and that is still in `without_store`.
    fn next_with_store(&self) -> Option<String> {
        let mut without_store = self.without_store.iter();
        let named = without_store.find(|name| self.names_store_of(name));
        named.cloned()
    }

    fn names_store_of(&self, table: &str) -> bool {
        let is_named = |table: &str| {
            let mut conditions = self.conditions.iter();
            conditions.any(|condition| self.names_store(condition, table))
        };
        let mut outer_conditions = self.outer_conditions.iter();
        is_named(table)
            || outer_conditions.any(|(joined, condition)| {
                // The condition of a left join restricts the rows of the joined table only, unless
                // another condition names the store of these: then rows for which the join finds none
                // are dropped.
                (joined == table || is_named(joined)) && self.names_store(condition, table)
            })
    }

    /// Whether a condition holds for rows of one store of a table only, of listed stores, or of
    /// those that a subquery of distributed tables finds.
    fn names_store(&self, condition: &Expr, table: &str) -> bool {
        match condition {
            Expr::Nested(condition) => self.names_store(condition, table),
            Expr::BinaryOp { left, op, right } => {
                let of_both = || [left, right].map(|side| self.names_store(side, table));
                let is_named = |this: &Expr, other: &Expr| {
                    is_store(this, table) && self.is_known(other, table)
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
                InTarget::Subquery(query) => {
                    let Found {
                        tables, references, ..
                    } = self.found;
                    !uses_in(query, tables, references).is_empty()
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the value of an expression depends on rows of one store only: it is not a column of
    /// the table itself, of a table whose store is not named yet, or of a reference table.
    fn is_known(&self, expression: &Expr, table: &str) -> bool {
        let mut without_store = self.without_store.iter();
        let is_unnamed = without_store.any(|other| is_store(expression, other));
        !is_unnamed && !is_store(expression, table) && !self.is_of_reference(expression)
    }

    fn is_of_reference(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Nested(expression) => self.is_of_reference(expression),
            Expr::Tuple(parts) => parts.iter().any(|part| self.is_of_reference(part)),
            Expr::CompoundIdentifier(path) => self.found.references.contains(&path[0].value),
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
