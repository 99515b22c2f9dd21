-- Entries and seals are only inserted.
CREATE FUNCTION "refuse_audit_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only: % is refused', TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
END $$;--> statement-breakpoint
CREATE TRIGGER "audit_events_append_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_events"
  FOR EACH STATEMENT EXECUTE FUNCTION "refuse_audit_change"();--> statement-breakpoint
CREATE TRIGGER "audit_seals_append_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_seals"
  FOR EACH STATEMENT EXECUTE FUNCTION "refuse_audit_change"();--> statement-breakpoint
CREATE FUNCTION "queue_audit_events"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO "audit_unsealed" SELECT "seq" FROM "new_rows";
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "audit_events_to_seal" AFTER INSERT ON "audit_events" REFERENCING NEW TABLE AS "new_rows"
  FOR EACH STATEMENT EXECUTE FUNCTION "queue_audit_events"();--> statement-breakpoint
-- Values of a row for the log: secret columns as "mark", encrypted values within JSON as "secret".
CREATE FUNCTION "audit_values"("row" jsonb, "columns" text[], "secrets" text[], "mark" text) RETURNS jsonb
  LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(jsonb_object_agg("key", CASE
    WHEN "value" = 'null' THEN "value"
    WHEN "key" = ANY("secrets") THEN to_jsonb("mark")
    ELSE regexp_replace("value"::text, '"v1\.[0-9a-f]{8}\.[^"]*"', '"secret"', 'g')::jsonb END), '{}')
  FROM jsonb_each("row") WHERE "key" = ANY("columns")
$$;--> statement-breakpoint
-- The API sets audit.call for its transactions. Changes without it are those of the service itself.
CREATE FUNCTION "add_audit_change"("args" text[], "operation" text, "row" jsonb, "before" jsonb, "after" jsonb) RETURNS void
  LANGUAGE sql AS $$
  INSERT INTO "audit_events" ("kind", "account_id", "action", "actor_type", "actor_id", "actor_name", "api_key_id",
    "session_id", "address", "user_agent", "request_id", "resource_type", "resource_id", "resource_name", "operation",
    "before", "after")
  SELECT 'change', coalesce(("row" ->> 'account_id')::uuid, c."account_id"), coalesce(c."action", 'system'),
    coalesce(c."actor_type", 'system'), c."actor_id", c."actor_name", c."api_key_id", c."session_id", c."address",
    c."user_agent", c."request_id", "args"[1], "row" ->> "args"[2], "row" ->> "args"[3], "operation", "before", "after"
  FROM jsonb_to_record(coalesce(nullif(current_setting('audit.call', true), ''), '{}')::jsonb) AS c(
    "account_id" uuid, "action" text, "actor_type" text, "actor_id" uuid, "actor_name" text, "api_key_id" uuid,
    "session_id" uuid, "address" text, "user_agent" text, "request_id" text)
$$;--> statement-breakpoint
-- Arguments of the triggers: type of the resource, columns of its id and name, recorded columns, secret columns.
CREATE FUNCTION "audit_change"() RETURNS trigger LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
  "args" text[] := ARRAY[TG_ARGV[0], TG_ARGV[1], TG_ARGV[2]];
  "columns" text[] := TG_ARGV[3]::text[];
  "secrets" text[] := TG_ARGV[4]::text[];
  "old_row" jsonb;
  "new_row" jsonb;
  "changed" text[];
BEGIN
  IF TG_OP = 'UPDATE' THEN
    "old_row" := to_jsonb(OLD);
    "new_row" := to_jsonb(NEW);
    "changed" := ARRAY(SELECT "key" FROM jsonb_each("new_row")
      WHERE "key" = ANY("columns") AND "value" IS DISTINCT FROM "old_row" -> "key");
    IF "changed" <> '{}' THEN
      PERFORM "add_audit_change"("args", 'update', "new_row",
        "audit_values"("old_row", "changed", "secrets", 'set'), "audit_values"("new_row", "changed", "secrets", 'changed'));
    END IF;
  ELSIF TG_OP = 'INSERT' THEN
    PERFORM "add_audit_change"("args", 'create', to_jsonb(r), NULL,
      jsonb_strip_nulls("audit_values"(to_jsonb(r), "columns", "secrets", 'set'))) FROM "changed_rows" r;
  ELSE
    PERFORM "add_audit_change"("args", 'delete', to_jsonb(r),
      jsonb_strip_nulls("audit_values"(to_jsonb(r), "columns", "secrets", 'set')), NULL) FROM "changed_rows" r;
  END IF;
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE FUNCTION "audit_secret_use"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO "audit_events" ("kind", "account_id", "action", "actor_type", "actor_id", "resource_type", "resource_id",
    "resource_name", "details")
  SELECT 'secret_use', u."account_id", u."purpose", u."actor_type", u."actor_id", 'account_connector',
    u."account_connector_id"::text, c."name", jsonb_strip_nulls(jsonb_build_object('host', u."host",
    'connection_run_id', u."connection_run_id", 'stream_run_id', u."stream_run_id"))
  FROM "new_rows" u LEFT JOIN "account_connectors" c ON c."id" = u."account_connector_id";
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "secret_uses_audited" AFTER INSERT ON "secret_uses" REFERENCING NEW TABLE AS "new_rows"
  FOR EACH STATEMENT EXECUTE FUNCTION "audit_secret_use"();
