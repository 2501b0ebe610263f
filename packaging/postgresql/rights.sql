-- SPDX-License-Identifier: MIT
-- Two roles for the store: one adds and removes records, one only reads. Run it as the owner of the store's tables
-- or as a superuser, after the first `rtgauge store add` and after each update of rtgauge:
--     psql -d rtgauge -f rights.sql
-- Then give the roles to people and machines: GRANT rtgauge_writer TO bench3;
DO $$
BEGIN
    CREATE ROLE rtgauge_writer NOLOGIN;
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;
DO $$
BEGIN
    CREATE ROLE rtgauge_reader NOLOGIN;
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;
GRANT USAGE ON SCHEMA rtgauge TO rtgauge_writer, rtgauge_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA rtgauge TO rtgauge_writer, rtgauge_reader;
GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rtgauge TO rtgauge_writer;
REVOKE INSERT, UPDATE, DELETE ON rtgauge.rtgauge_store FROM rtgauge_writer;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA rtgauge TO rtgauge_writer;
