//! What the files of the aggregates use to build statements and run them.

pub(crate) use jiff::Timestamp;
pub(crate) use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    QueryTrait, Select,
    sea_query::{
        CaseStatement, Expr, LockBehavior, LockType, OnConflict, Query, SelectStatement, SimpleExpr,
    },
};
pub(crate) use uuid::Uuid;

pub(crate) use crate::{Error, padded_params::padded, rows};
