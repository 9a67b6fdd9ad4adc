-- Images of tasks: proofs of delivery, and of incidents. Their files are in the folder of the cores, named by their ids;
-- `hash` is the SHA-256 of the file, by which a repeated upload is found.
CREATE TABLE images (
    store_id uuid NOT NULL,
    id uuid NOT NULL,
    task_id uuid NOT NULL,
    content_type text NOT NULL,
    size bigint NOT NULL,
    hash bytea NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (store_id, id)
);
-- Couriers and dispatch find one by its id alone.
CREATE INDEX images_by_id ON images (id);
CREATE UNIQUE INDEX images_of_tasks ON images (store_id, task_id, hash);

-- Images that were erased, until their files are deleted too.
CREATE TABLE image_deletions (
    id uuid PRIMARY KEY
);

-- The id that the folder of images has: one row, or none before the first folder.
CREATE TABLE image_folders (
    number bigint PRIMARY KEY,
    id uuid NOT NULL
);

-- The ids of the images of the task, oldest first; null without images.
ALTER TABLE tasks ADD COLUMN images jsonb;
