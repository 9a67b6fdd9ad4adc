-- The courier as whom a client works.
ALTER TABLE api_clients ADD COLUMN courier_id uuid;
