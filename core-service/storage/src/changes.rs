//! Changes of rows that are made before a query: on `PostgreSQL` in the same statement, and so in one
//! round trip, on `SQLite` each in its own.

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

    /// Adds the update of a row that the transaction has locked: of its columns that are set.
    pub(super) fn update<A: ActiveModelTrait>(&mut self, row: A) -> Result<(), Error> {
        let update = A::Entity::update(row).validate()?;
        self.0.push(Change::Update(update.into_query()));
        Ok(())
    }

    /// Adds the update of several rows of a table that no other change updates.
    pub(super) fn update_all(&mut self, update: UpdateStatement) {
        self.0.push(Change::Update(update));
    }

    /// Makes each change in its own statement.
    pub(super) async fn make(self, transaction: &impl ConnectionTrait) -> Result<(), Error> {
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
        if transaction.get_database_backend() == DbBackend::Postgres && !self.0.is_empty() {
            query = self.into_part_of(query);
        } else {
            self.make(transaction).await?;
        }
        Ok(transaction.query_all(&query).await?)
    }

    fn into_part_of(self, mut query: SelectStatement) -> SelectStatement {
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
        query.with_cte(clause).take()
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        event::Object,
        id::{DeliveryId, EventId, StoreId},
    };
    use sea_orm::sea_query::PostgresQueryBuilder;

    use super::*;
    use crate::{
        entity::{platform_secret, store},
        events,
    };

    #[test]
    fn changes_are_parts_of_one_statement_of_postgresql() {
        let mut changes = Changes::default();
        let secret = platform_secret::ActiveModel {
            name: Set("name".to_owned()),
            encrypted_secret: Set(vec![7]),
        };
        changes.update(secret).unwrap();
        let object = Object::Delivery(DeliveryId::new());
        let event = events::NewEvent {
            store_id: StoreId::new(),
            id: EventId::new(),
            name: "delivery.completed",
            object,
        };
        changes.insert(events::insertion([event], Timestamp::UNIX_EPOCH).into_query());
        let query = store::Entity::find()
            .select_only()
            .column(store::Column::Id);

        let statement = changes.into_part_of(query.into_query());

        let (sql, _) = statement.build(PostgresQueryBuilder);
        assert_eq!(
            sql,
            "WITH \"change_0\" AS \
             (UPDATE \"platform_secrets\" SET \"encrypted_secret\" = $1 \
             WHERE \"platform_secrets\".\"name\" = $2) , \
             \"change_1\" AS \
             (INSERT INTO \"events\" (\"store_id\", \"id\", \"name\", \"object_collection\", \
             \"object_id\", \"created_at\", \"number\", \"position\") \
             VALUES ($3, $4, $5, $6, $7, $8, $9, $10)) \
             SELECT \"stores\".\"id\" FROM \"stores\""
        );
    }
}
