//! Images of tasks: their rows, which ids of files have none, and the id of the folder that has the files.

use domain::{
    delivery::Delivery,
    id::{ImageId, StoreId, TaskId},
    image::Image,
    task::TaskKind,
};

use super::{
    entity::{
        ImagesJson,
        image::{ActiveModel, Column, Entity, Model},
        task,
    },
    task_changes::{self, Watched},
    tasks::changed_columns,
};
use crate::prelude::*;

/// An image of a store.
pub async fn find(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    id: ImageId,
) -> Result<Option<Image>, Error> {
    rows::first(connection, Entity::find_by_id((store_id.0, id.0))).await
}

/// An image of any store.
pub async fn find_of_any_store(
    connection: &impl ConnectionTrait,
    id: ImageId,
) -> Result<Option<Image>, Error> {
    rows::first(connection, Entity::find().filter(Column::Id.eq(id.0))).await
}

/// The image of a task whose file has this hash.
pub async fn find_same(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    task_id: TaskId,
    hash: [u8; 32],
) -> Result<Option<Image>, Error> {
    let query = Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::TaskId.eq(task_id.0))
        .filter(Column::Hash.eq(hash.to_vec()));
    rows::first(connection, query).await
}

/// Inserts an image, which has changed its task, and queues that for watchers.
pub async fn insert(
    transaction: &impl ConnectionTrait,
    delivery: &Delivery,
    kind: TaskKind,
    image: &Image,
) -> Result<(), Error> {
    let row = ActiveModel {
        store_id: Set(image.store_id.0),
        id: Set(image.id.0),
        task_id: Set(image.task_id.0),
        content_type: Set(image.content_type.as_str().to_owned()),
        size: Set(image.size.into()),
        hash: Set(image.hash.to_vec()),
        created_at: Set(image.created_at.into()),
    };
    rows::insert(transaction, row).await?;
    let changed = delivery.task(kind);
    let row = task::ActiveModel {
        images: Set(Some(ImagesJson(changed.images.clone()))),
        ..changed_columns(image.store_id, changed)
    };
    rows::update(transaction, row).await?;
    let change = task_changes::insertion([Watched::Delivery(image.store_id, delivery.id)]);
    change.exec_without_returning(transaction).await?;
    Ok(())
}

/// Deletes the images of tasks, and queues the deletion of their files.
pub(super) async fn erase(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    tasks: impl IntoIterator<Item = Uuid>,
) -> Result<(), Error> {
    let delete = Entity::delete_many()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::TaskId.is_in(tasks));
    let deleted = delete.exec_with_returning(transaction).await?;
    if deleted.is_empty() {
        return Ok(());
    }
    let ids = rows::padded(deleted.into_iter().map(|image| image.id));
    // The last may be repeated.
    let queue = format!(
        "INSERT INTO image_deletions (id) VALUES {} ON CONFLICT (id) DO NOTHING",
        rows::placeholders(&mut (1..), ids.len(), 1)
    );
    rows::run(transaction, &queue, ids.into_iter().map(Into::into)).await
}

/// Some of the images whose files are to be deleted: the first after an id.
pub async fn list_deletions(
    connection: &impl ConnectionTrait,
    after: ImageId,
    limit: u32,
) -> Result<Vec<ImageId>, Error> {
    let select = "SELECT id FROM image_deletions WHERE id > $1 ORDER BY id LIMIT $2";
    let values = [after.0.into(), i64::from(limit).into()];
    let rows = rows::query(connection, select, values).await?;
    let ids = rows.iter().map(|row| row.try_get_by_index(0).map(ImageId));
    Ok(ids.collect::<Result<_, _>>()?)
}

/// Removes an image whose file is deleted from the queue.
pub async fn end_deletion(transaction: &impl ConnectionTrait, id: ImageId) -> Result<(), Error> {
    let delete = "DELETE FROM image_deletions WHERE id = $1";
    rows::run(transaction, delete, [id.0.into()]).await
}

/// Those of these ids that images of any store have.
pub async fn find_existing(
    connection: &impl ConnectionTrait,
    ids: &[ImageId],
) -> Result<Vec<ImageId>, Error> {
    let ids = padded(ids.iter().map(|id| id.0));
    let query = Entity::find().select_only().column(Column::Id);
    let query = query.filter(Column::Id.is_in(ids)).into_tuple::<Uuid>();
    let found = query.all(connection).await?.into_iter();
    Ok(found.map(ImageId).collect())
}

/// Whether there is any image.
pub async fn exist(connection: &impl ConnectionTrait) -> Result<bool, Error> {
    rows::exist(connection, Entity::find()).await
}

/// The id of the folder with the files; none before the first folder.
pub async fn folder_id(connection: &impl ConnectionTrait) -> Result<Option<Uuid>, Error> {
    let select = "SELECT id FROM image_folders WHERE number = 1";
    rows::find_value(connection, select, []).await
}

/// Stores the id of the folder, unless there is one.
pub async fn insert_folder_id(transaction: &impl ConnectionTrait, id: Uuid) -> Result<(), Error> {
    let insert = "INSERT INTO image_folders (number, id) VALUES (1, $1)
        ON CONFLICT (number) DO NOTHING";
    rows::run(transaction, insert, [id.into()]).await
}

impl TryFrom<Model> for Image {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Error> {
        let inconsistent = |what: String| Error::inconsistent("images", what);
        Ok(Self {
            id: ImageId(row.id),
            store_id: StoreId(row.store_id),
            task_id: TaskId(row.task_id),
            content_type: row.content_type.parse().map_err(inconsistent)?,
            size: u32::try_from(row.size).map_err(|error| inconsistent(error.to_string()))?,
            hash: row
                .hash
                .try_into()
                .map_err(|_| inconsistent("the length of a hash".to_owned()))?,
            created_at: row.created_at.try_into()?,
        })
    }
}
