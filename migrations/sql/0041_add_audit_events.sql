-- What operators and dispatch changed, and whose personal data they read: `rpc` of which client, from which network address
-- (null within a process), on which resource of which store (null if it is of none). Rows are only added, until
-- their retention.
CREATE TABLE audit_events (
    id uuid NOT NULL PRIMARY KEY,
    created_at bigint NOT NULL,
    api_client_id uuid NOT NULL,
    address text,
    rpc text NOT NULL,
    resource text NOT NULL,
    store_id uuid
);
CREATE INDEX audit_events_by_time ON audit_events (created_at, id);
CREATE INDEX audit_events_by_client ON audit_events (api_client_id, created_at, id);
CREATE INDEX audit_events_by_rpc ON audit_events (rpc, created_at, id);
CREATE INDEX audit_events_by_resource ON audit_events (resource, created_at, id);
CREATE INDEX audit_events_by_store ON audit_events (store_id, created_at, id);
