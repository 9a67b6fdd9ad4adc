//! Changes of rows that `PostgreSQL` makes in the same statement as a query, and so in one round trip.

use sea_orm::{
    ActiveModelTrait, QueryResult,
    sea_query::{
        CommonTableExpression, InsertStatement, SubQueryStatement, UpdateStatement, WithClause,
    },
};

use crate::prelude::*;

/// Changes of different rows, in no particular order.
#[derive(Clone, Debug, Default)]
pub struct Changes(Vec<Change>);

#[derive(Clone, Debug)]
enum Change {
    Insert(InsertStatement),
    Update(UpdateStatement),
}

impl Changes {
    pub(super) fn insert(&mut self, insert: InsertStatement) {
        self.0.push(Change::Insert(insert));
    }

    /// Adds the update of a row, which must exist: of its columns that are set.
    pub(super) fn update<A: ActiveModelTrait>(&mut self, row: A) -> Result<(), Error> {
        let update = A::Entity::update(row).validate()?;
        self.0.push(Change::Update(update.into_query()));
        Ok(())
    }

    /// Makes the changes.
    pub async fn make(self, transaction: &impl ConnectionTrait) -> Result<(), Error> {
        for change in self.0 {
            match change {
                Change::Insert(insert) => transaction.execute(&insert).await?,
                Change::Update(update) => transaction.execute(&update).await?,
            };
        }
        Ok(())
    }

    /// Makes the changes, and returns the rows of a query on tables that they do not change.
    pub(super) async fn make_and_query(
        self,
        transaction: &impl ConnectionTrait,
        mut query: SelectStatement,
    ) -> Result<Vec<QueryResult>, Error> {
        if transaction.get_database_backend() == DbBackend::Postgres {
            query.with_cte(self.into_clause());
        } else {
            self.make(transaction).await?;
        }
        Ok(transaction.query_all(&query).await?)
    }

    fn into_clause(self) -> WithClause {
        let mut clause = WithClause::new();
        for (index, change) in self.0.into_iter().enumerate() {
            let statement = match change {
                Change::Insert(insert) => SubQueryStatement::InsertStatement(insert),
                Change::Update(update) => SubQueryStatement::UpdateStatement(update),
            };
            let mut expression = CommonTableExpression::new();
            expression
                .table_name(format!("change_{index}"))
                .query(statement);
            clause.cte(expression);
        }
        clause
    }
}
