-- One core at a time removes what is past its retention: `owner`, until `expires_at` by the lease clock. One row.
CREATE TABLE retention_leases (
    id bigint NOT NULL,
    owner uuid,
    expires_at bigint NOT NULL,
    PRIMARY KEY (id)
);
INSERT INTO retention_leases (id, expires_at) VALUES (1, 0);
