-- The first released schema.

-- `service_area` is null if the store delivers anywhere.
CREATE TABLE stores (
    id uuid NOT NULL,
    display_name text NOT NULL,
    time_zone text NOT NULL,
    currency text NOT NULL,
    country text NOT NULL,
    default_address jsonb,
    service_area jsonb,
    created_at bigint NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE time_slots (
    store_id uuid NOT NULL,
    id uuid NOT NULL,
    display_name text NOT NULL,
    definition text NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (store_id, id)
);

-- The number of bookings of each choice of a time slot with a limited capacity.
CREATE TABLE slot_bookings (
    store_id uuid NOT NULL,
    time_slot_id uuid NOT NULL,
    starts_at bigint NOT NULL,
    ends_at bigint NOT NULL,
    booked bigint NOT NULL,
    PRIMARY KEY (store_id, time_slot_id, starts_at, ends_at)
);

CREATE TABLE price_lists (
    store_id uuid NOT NULL,
    version bigint NOT NULL,
    definition text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (store_id, version)
);

-- The OAuth 2.0 clients. `store_id` is null for the platform's own programs, which belong to no store.
CREATE TABLE api_clients (
    id uuid NOT NULL,
    store_id uuid,
    display_name text NOT NULL,
    api_key text NOT NULL,
    secret_hash bytea NOT NULL,
    replaced_secrets bytea NOT NULL,
    scopes text NOT NULL,
    default_address jsonb,
    created_at bigint NOT NULL,
    disabled_at bigint,
    PRIMARY KEY (id)
);

-- They sign access tokens.
CREATE TABLE signing_keys (
    id text NOT NULL,
    encrypted_private_key bytea NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE platform_secrets (
    name text NOT NULL,
    encrypted_secret bytea NOT NULL,
    PRIMARY KEY (name)
);

-- Stored responses. `key_hash` is of the client's idempotency key and the operation.
CREATE TABLE idempotency_keys (
    store_id uuid NOT NULL,
    api_client_id uuid NOT NULL,
    key_hash bytea NOT NULL,
    request_hash bytea NOT NULL,
    encrypted_response bytea NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (store_id, api_client_id, key_hash)
);
CREATE UNIQUE INDEX api_clients_by_api_key ON api_clients (api_key);

-- Expired keys are deleted oldest first.
CREATE INDEX idempotency_keys_by_creation ON idempotency_keys (created_at);

-- `external_reference` is the store's own identifier. The price depends on the distance, so its
-- source is stored with it; `retail_price` is the name of the quote that set the price. The booked
-- slot is stored if its capacity is limited. `dropoff_before` and `completed_at` are copies of the
-- tasks' values, for filters of lists. `erased_at` is when its personal data was erased.
CREATE TABLE deliveries (
    store_id uuid NOT NULL,
    id uuid NOT NULL,
    external_reference text,
    distance_meters bigint NOT NULL,
    duration_seconds bigint NOT NULL,
    distance_source text NOT NULL,
    price_net bigint,
    price_tax bigint,
    price_currency text,
    retail_price text,
    booked_time_slot_id uuid,
    booked_after bigint,
    booked_before bigint,
    dropoff_before bigint,
    completed_at bigint,
    created_at bigint NOT NULL,
    cancelled_at bigint,
    erased_at bigint,
    PRIMARY KEY (store_id, id)
);

-- The bytes that a store created in each hour of the last day. `hour` is the beginning of the hour.
CREATE TABLE created_bytes (
    store_id uuid NOT NULL,
    hour_of_day bigint NOT NULL,
    hour bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (store_id, hour_of_day)
);

CREATE TABLE tasks (
    store_id uuid NOT NULL,
    id uuid NOT NULL,
    delivery_id uuid NOT NULL,
    kind text NOT NULL,
    address jsonb NOT NULL,
    after bigint NOT NULL,
    before bigint NOT NULL,
    time_slot boolean NOT NULL,
    comments text NOT NULL,
    weight bigint,
    packages jsonb NOT NULL,
    tags jsonb NOT NULL,
    metadata jsonb NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    completed_at bigint,
    cancelled_at bigint,
    PRIMARY KEY (store_id, id)
);

-- The delivery that used each quote: one at most.
CREATE TABLE retail_price_uses (
    store_id uuid NOT NULL,
    retail_price_id uuid NOT NULL,
    delivery_id uuid NOT NULL,
    used_at bigint NOT NULL,
    PRIMARY KEY (store_id, retail_price_id)
);

-- Lists are ordered by creation, newest first. The partial indexes contain only the rows that a filter
-- selects, so that a page of few rows does not scan many others.
CREATE INDEX deliveries_by_creation ON deliveries (store_id, created_at, id);
CREATE INDEX deliveries_to_do ON deliveries (store_id, created_at, id)
    WHERE completed_at IS NULL;
CREATE INDEX deliveries_cancelled ON deliveries (store_id, created_at, id)
    WHERE cancelled_at IS NOT NULL;
CREATE UNIQUE INDEX deliveries_by_external_reference ON deliveries (store_id, external_reference)
    WHERE external_reference IS NOT NULL;
CREATE INDEX deliveries_by_dropoff ON deliveries (store_id, dropoff_before);

-- For retention.
CREATE INDEX deliveries_not_erased ON deliveries (dropoff_before) WHERE erased_at IS NULL;
CREATE INDEX tasks_by_delivery ON tasks (store_id, delivery_id);

-- The platform's own programs address a task without its store.
CREATE INDEX tasks_by_id ON tasks (id);

-- `number` is the sequence number within the store, `position` that over all stores. The sequencer
-- assigns both after the commit; readers see numbered events only.
CREATE TABLE events (
    store_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    object_collection text NOT NULL,
    object_id uuid NOT NULL,
    created_at bigint NOT NULL,
    number bigint,
    position bigint,
    PRIMARY KEY (store_id, id)
);

-- `retained_after` is the newest number that retention has removed; 0 if none.
CREATE TABLE event_counters (
    store_id uuid NOT NULL,
    last_number bigint NOT NULL,
    retained_after bigint NOT NULL,
    PRIMARY KEY (store_id)
);

-- One row, which is locked while numbers are assigned: the last position, and the newest one that
-- retention has removed (0 if none). The columns of a lease are not used any more.
CREATE TABLE event_sequencers (
    id bigint NOT NULL,
    lease_owner uuid,
    lease_expires_at bigint NOT NULL,
    last_position bigint NOT NULL,
    retained_after bigint NOT NULL,
    PRIMARY KEY (id)
);

-- Unique, so that no number is assigned twice.
CREATE UNIQUE INDEX events_by_number ON events (store_id, number);
CREATE UNIQUE INDEX events_by_position ON events (position);
CREATE INDEX events_unnumbered ON events (created_at, id) WHERE number IS NULL;

-- `host` is the URL's host and port. The retired secrets are each prefixed with their length in two
-- bytes, oldest first. `next_due_at` is the position in the queue: null if no notification is
-- pending, and never after both the instant when the earliest is due and that of the last claim.
-- `receiver_health` is how long the last attempt took: healthy or slow; null before the first.
-- `is_proven`: the receiver has accepted a notification, and not only failed for a minute since.
-- `failing_since` is the first failure since the last success. `disabled_from` and `disabled_until`
-- are the period in which it was disabled, until its missed events are enqueued.
CREATE TABLE webhooks (
    store_id uuid NOT NULL,
    id uuid NOT NULL,
    api_client_id uuid NOT NULL,
    event text NOT NULL,
    url text NOT NULL,
    host text NOT NULL,
    encrypted_secret bytea NOT NULL,
    encrypted_retired_secrets bytea,
    overlap_ends_at bigint,
    next_due_at bigint,
    receiver_health text,
    is_proven boolean NOT NULL,
    failing_since bigint,
    created_at bigint NOT NULL,
    disabled_at bigint,
    disabled_reason text,
    disabled_from bigint,
    disabled_until bigint,
    PRIMARY KEY (store_id, id)
);

-- Hosts at which an unproven webhook had an attempt: the store's next attempt at the host waits
-- until that one ends (`in_flight_until`, by the lease clock), and for a pause after failures.
-- `failures` counts those since a notification was accepted.
CREATE TABLE receiver_hosts (
    store_id uuid NOT NULL,
    host text NOT NULL,
    in_flight_until bigint NOT NULL,
    failures bigint NOT NULL,
    failed_at bigint NOT NULL,
    PRIMARY KEY (store_id, host)
);

-- `attempts_at_resend` is the number of attempts made before the retry schedule last started.
CREATE TABLE notifications (
    store_id uuid NOT NULL,
    id uuid NOT NULL,
    event_id uuid NOT NULL,
    webhook_id uuid NOT NULL,
    event text NOT NULL,
    delivery_id uuid NOT NULL,
    state text NOT NULL,
    attempts bigint NOT NULL,
    attempts_at_resend bigint NOT NULL DEFAULT 0,
    due_at bigint NOT NULL,
    lease_token uuid,
    lease_expires_at bigint,
    created_at bigint NOT NULL,
    finished_at bigint,
    PRIMARY KEY (store_id, id)
);

-- `duration` is in microseconds.
CREATE TABLE attempts (
    store_id uuid NOT NULL,
    notification_id uuid NOT NULL,
    number bigint NOT NULL,
    failure text,
    status bigint,
    duration bigint NOT NULL,
    response_body text NOT NULL,
    recorded_at bigint NOT NULL,
    PRIMARY KEY (store_id, notification_id, number)
);
CREATE INDEX webhooks_by_event ON webhooks (store_id, event);
CREATE INDEX webhooks_by_host ON webhooks (store_id, host);

-- Operators address a webhook without its store.
CREATE INDEX webhooks_by_id ON webhooks (id);
CREATE INDEX webhooks_by_next_due ON webhooks (next_due_at) WHERE next_due_at IS NOT NULL;
CREATE INDEX notifications_by_id ON notifications (id);

-- The order of lists, newest first. Most stored notifications are delivered: the partial indexes for
-- claims and recovery exclude them, so that these read few rows.
CREATE INDEX notifications_by_creation ON notifications (store_id, webhook_id, created_at, id);
CREATE INDEX notifications_failed ON notifications (store_id, webhook_id, created_at, id)
    WHERE state <> 'delivered' AND (attempts > 0 OR state = 'cancelled');
CREATE INDEX notifications_pending ON notifications (store_id, webhook_id, due_at)
    WHERE state = 'pending';
CREATE INDEX notifications_leased ON notifications (store_id, webhook_id, lease_expires_at)
    WHERE state = 'leased';

-- For retention.
CREATE INDEX notifications_finished ON notifications (finished_at)
    WHERE finished_at IS NOT NULL;

-- Each version contains all zones.
CREATE TABLE zone_sets (
    version bigint NOT NULL,
    definition text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (version)
);

-- Results of external geocoders. `place` is null if the address was not found.
CREATE TABLE geocodes (
    key bytea NOT NULL,
    place jsonb,
    expires_at bigint NOT NULL,
    PRIMARY KEY (key)
);
CREATE INDEX geocodes_by_expiry ON geocodes (expires_at);

INSERT INTO event_sequencers (id, lease_expires_at, last_position, retained_after)
    VALUES (1, 0, 0, 0);
