-- Runs use the same secrets again and again: an entry for each use was most of the log. All uses are in secret_uses.
CREATE OR REPLACE FUNCTION "audit_secret_use"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO "audit_events" ("kind", "account_id", "action", "actor_type", "actor_id", "resource_type", "resource_id",
    "resource_name", "details")
  SELECT 'secret_use', u."account_id", u."purpose", u."actor_type", u."actor_id", 'account_connector',
    u."account_connector_id"::text, c."name", jsonb_strip_nulls(jsonb_build_object('host', u."host",
    'connection_run_id', u."connection_run_id", 'stream_run_id', u."stream_run_id"))
  FROM "new_rows" u LEFT JOIN "account_connectors" c ON c."id" = u."account_connector_id"
  -- With a limit, unlike NOT EXISTS, it stays a look into the index for each row.
  WHERE (
    SELECT s."id" FROM "secret_uses" s
    WHERE s."account_connector_id" = u."account_connector_id" AND s."id" < u."id"
      -- Ids begin with their time: those of a day are one range of the index.
      AND s."id" >= (lpad(to_hex((extract(epoch FROM date_trunc('day', u."occurred_at", 'UTC')) * 1000)::bigint), 12, '0')
        || repeat('0', 20))::uuid
      AND s."occurred_at" >= date_trunc('day', u."occurred_at", 'UTC')
      AND s."host" = u."host" AND s."purpose" = u."purpose" AND s."actor_type" = u."actor_type"
      AND s."actor_id" IS NOT DISTINCT FROM u."actor_id"
    LIMIT 1) IS NULL
  ORDER BY u."id";
  RETURN NULL;
END $$;
