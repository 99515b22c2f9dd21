-- One statement for all rows of an INSERT or DELETE, planned once per session: a connection may have a thousand streams.
CREATE OR REPLACE FUNCTION "audit_change"() RETURNS trigger LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
  "columns" text[] := TG_ARGV[3]::text[];
  "secrets" text[] := TG_ARGV[4]::text[];
  "call" record;
  "old_row" jsonb;
  "new_row" jsonb;
  "old_values" jsonb;
  "new_values" jsonb;
BEGIN
  SELECT * INTO "call" FROM jsonb_to_record(coalesce(nullif(current_setting('audit.call', true), ''), '{}')::jsonb)
    AS c("account_id" uuid, "action" text, "actor_type" text, "actor_id" uuid, "actor_name" text, "api_key_id" uuid,
    "session_id" uuid, "address" text, "user_agent" text, "request_id" text);
  IF TG_OP = 'UPDATE' THEN
    "old_row" := to_jsonb(OLD);
    "new_row" := to_jsonb(NEW);
    SELECT jsonb_object_agg(e."key", CASE
        WHEN e."old" = 'null' THEN e."old"
        WHEN e."key" = ANY("secrets") THEN '"set"'
        WHEN strpos(e."old"::text, '"v1.') = 0 THEN e."old"
        ELSE regexp_replace(e."old"::text, '"v1\.[0-9a-f]{8}\.[^"]*"', '"secret"', 'g')::jsonb END),
      jsonb_object_agg(e."key", CASE
        WHEN e."new" = 'null' THEN e."new"
        WHEN e."key" = ANY("secrets") THEN '"changed"'
        WHEN strpos(e."new"::text, '"v1.') = 0 THEN e."new"
        ELSE regexp_replace(e."new"::text, '"v1\.[0-9a-f]{8}\.[^"]*"', '"secret"', 'g')::jsonb END)
      INTO "old_values", "new_values"
      FROM (SELECT n."key", "old_row" -> n."key" AS "old", n."value" AS "new"
        FROM jsonb_each("new_row") AS n("key", "value") WHERE n."key" = ANY("columns")) e
      WHERE e."old" IS DISTINCT FROM e."new";
    IF "new_values" IS NOT NULL THEN
      INSERT INTO "audit_events" ("kind", "account_id", "action", "actor_type", "actor_id", "actor_name", "api_key_id",
        "session_id", "address", "user_agent", "request_id", "resource_type", "resource_id", "resource_name",
        "operation", "before", "after")
      VALUES ('change', coalesce(("new_row" ->> 'account_id')::uuid, "call"."account_id"),
        coalesce("call"."action", 'system'), coalesce("call"."actor_type", 'system'), "call"."actor_id",
        "call"."actor_name", "call"."api_key_id", "call"."session_id", "call"."address", "call"."user_agent",
        "call"."request_id", TG_ARGV[0], "new_row" ->> TG_ARGV[1], "new_row" ->> TG_ARGV[2], 'update',
        "old_values", "new_values");
    END IF;
    RETURN NULL;
  END IF;
  INSERT INTO "audit_events" ("kind", "account_id", "action", "actor_type", "actor_id", "actor_name", "api_key_id",
    "session_id", "address", "user_agent", "request_id", "resource_type", "resource_id", "resource_name",
    "operation", "before", "after")
  SELECT 'change', coalesce((x."row" ->> 'account_id')::uuid, "call"."account_id"),
    coalesce("call"."action", 'system'), coalesce("call"."actor_type", 'system'), "call"."actor_id",
    "call"."actor_name", "call"."api_key_id", "call"."session_id", "call"."address", "call"."user_agent",
    "call"."request_id", TG_ARGV[0], x."row" ->> TG_ARGV[1], x."row" ->> TG_ARGV[2],
    CASE TG_OP WHEN 'INSERT' THEN 'create' ELSE 'delete' END,
    CASE TG_OP WHEN 'DELETE' THEN x."values" END, CASE TG_OP WHEN 'INSERT' THEN x."values" END
  FROM (
    SELECT r."row", (
      SELECT coalesce(jsonb_object_agg(e."key", CASE
        WHEN e."key" = ANY("secrets") THEN '"set"'
        WHEN strpos(e."value"::text, '"v1.') = 0 THEN e."value"
        ELSE regexp_replace(e."value"::text, '"v1\.[0-9a-f]{8}\.[^"]*"', '"secret"', 'g')::jsonb END), '{}')
      FROM jsonb_each(r."row") AS e("key", "value") WHERE e."key" = ANY("columns") AND e."value" <> 'null') AS "values"
    FROM (SELECT to_jsonb(c) AS "row" FROM "changed_rows" c OFFSET 0) r) x;
  RETURN NULL;
END $$;--> statement-breakpoint
DROP FUNCTION "add_audit_change";--> statement-breakpoint
DROP FUNCTION "audit_values";
