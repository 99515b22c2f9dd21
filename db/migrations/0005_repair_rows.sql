-- Rows that the constraints of the next migration would refuse. Each statement changes only such rows.
UPDATE "connection_runs" SET "finished_at" = "updated_at"
WHERE "finished_at" IS NULL AND "status" IN ('succeeded', 'partially_succeeded', 'failed', 'stopped', 'skipped');--> statement-breakpoint
UPDATE "connection_runs" SET "finished_at" = NULL
WHERE "finished_at" IS NOT NULL AND "status" IN ('queued', 'running', 'retrying', 'stopping');--> statement-breakpoint
UPDATE "connection_runs" SET "skip_reason" = CASE WHEN "status" = 'skipped' THEN 'overlap' END
WHERE ("skip_reason" IS NOT NULL) <> ("status" = 'skipped');--> statement-breakpoint
UPDATE "connection_runs" SET "stop_requested_at" = "updated_at" WHERE "status" = 'stopping' AND "stop_requested_at" IS NULL;--> statement-breakpoint
UPDATE "connection_runs" SET "window_start" = "window_end", "window_end" = "window_start" WHERE "window_start" > "window_end";--> statement-breakpoint
UPDATE "connection_runs" SET "custom_run_plan_id" = NULL
WHERE "custom_run_plan_id" IS NOT NULL AND "custom_run_plan_id" NOT IN (SELECT "id" FROM "custom_run_plans");--> statement-breakpoint
UPDATE "connection_runs" SET "chunk_index" = NULL, "chunk_count" = NULL
WHERE "custom_run_plan_id" IS NULL AND ("chunk_index" IS NOT NULL OR "chunk_count" IS NOT NULL);--> statement-breakpoint
UPDATE "connection_runs" SET "chunk_index" = coalesce("chunk_index", 0),
  "chunk_count" = greatest(coalesce("chunk_count", 1), coalesce("chunk_index", 0) + 1)
WHERE "custom_run_plan_id" IS NOT NULL
  AND ("chunk_index" IS NULL OR "chunk_count" IS NULL OR "chunk_index" >= "chunk_count");--> statement-breakpoint
UPDATE "connection_runs" SET "rerun_of_run_id" = NULL
WHERE "rerun_of_run_id" = "id" OR "rerun_of_run_id" NOT IN (SELECT "id" FROM "connection_runs");--> statement-breakpoint
UPDATE "stream_runs" s SET "status" = 'stopped' FROM "connection_runs" r
WHERE r."id" = s."connection_run_id" AND s."status" IN ('pending', 'running', 'rate_limited', 'retrying')
  AND r."status" NOT IN ('queued', 'running', 'retrying', 'stopping');--> statement-breakpoint
UPDATE "stream_runs" SET "status" = 'retrying'
WHERE "status" IN ('running', 'rate_limited') AND ("fence" = 0 OR "heartbeat_at" IS NULL);--> statement-breakpoint
UPDATE "stream_runs" SET "finished_at" = "updated_at"
WHERE "finished_at" IS NULL AND "status" IN ('succeeded', 'failed', 'stopped', 'skipped');--> statement-breakpoint
UPDATE "stream_runs" SET "finished_at" = NULL
WHERE "finished_at" IS NOT NULL AND "status" IN ('pending', 'running', 'rate_limited', 'retrying');--> statement-breakpoint
UPDATE "connections" SET "locked_from" = NULL WHERE "locked_from" IS NOT NULL AND "status" <> 'locked';--> statement-breakpoint
UPDATE "connections" SET "next_run_at" = NULL WHERE "next_run_at" IS NOT NULL AND "deleted_at" IS NOT NULL;--> statement-breakpoint
UPDATE "account_connectors" SET "catalog_status" = 'never' WHERE "catalog_status" = 'ready' AND "catalog_refreshed_at" IS NULL;--> statement-breakpoint
UPDATE "tasks" SET "finished_at" = CASE WHEN "status" IN ('succeeded', 'failed') THEN "updated_at" END
WHERE ("finished_at" IS NOT NULL) <> ("status" IN ('succeeded', 'failed'));--> statement-breakpoint
UPDATE "tasks" SET "error" = CASE WHEN "status" = 'failed'
  THEN '{"code": "unexpected_error", "message": "The task failed for an unknown reason. Start it again."}'::jsonb END
WHERE ("error" IS NOT NULL) <> ("status" = 'failed');--> statement-breakpoint
UPDATE "deliveries" SET "delivered_at" = CASE WHEN "status" = 'delivered' THEN coalesce("last_attempt_at", "created_at") END
WHERE ("delivered_at" IS NOT NULL) <> ("status" = 'delivered');--> statement-breakpoint
UPDATE "cases" SET "resolved_at" = coalesce("resolved_at", "updated_at"), "resolution" = coalesce("resolution", 'auto')
WHERE "status" = 'resolved' AND ("resolved_at" IS NULL OR "resolution" IS NULL);--> statement-breakpoint
UPDATE "cases" SET "resolved_at" = NULL, "resolved_by" = NULL, "resolution" = NULL
WHERE "status" <> 'resolved' AND ("resolved_at" IS NOT NULL OR "resolution" IS NOT NULL);--> statement-breakpoint
UPDATE "cases" SET "acknowledged_at" = "updated_at" WHERE "status" = 'acknowledged' AND "acknowledged_at" IS NULL;--> statement-breakpoint
UPDATE "cases" SET "last_event_at" = "first_event_at" WHERE "last_event_at" < "first_event_at";--> statement-breakpoint
-- A plan keeps the responses of all its launches.
UPDATE "custom_run_plans" SET "launch_response" = jsonb_build_array("launch_response")
WHERE jsonb_typeof("launch_response") = 'object';--> statement-breakpoint
UPDATE "triggers" SET "condition" = NULL WHERE "rule" IS NOT NULL AND "condition" IS NOT NULL;--> statement-breakpoint
UPDATE "triggers" SET "rule" = "normalized_rule" WHERE "rule" IS NULL AND "condition" IS NULL;--> statement-breakpoint
DELETE FROM "idempotency_keys"
WHERE "user_id" NOT IN (SELECT "id" FROM "users") OR ("status" IS NULL) <> ("sealed_body" IS NULL);--> statement-breakpoint
DELETE FROM "sessions" WHERE "expires_at" <= "created_at";--> statement-breakpoint
UPDATE "roles" SET "is_system" = "account_id" IS NULL WHERE "is_system" <> ("account_id" IS NULL);--> statement-breakpoint
UPDATE "users" SET "invitation_expires_at" = "updated_at" WHERE "invitation_hash" IS NOT NULL AND "invitation_expires_at" IS NULL;--> statement-breakpoint
UPDATE "users" SET "avatar_updated_at" = "updated_at" WHERE "avatar_key" IS NOT NULL AND "avatar_updated_at" IS NULL;--> statement-breakpoint
UPDATE "triggers" SET "is_system" = "system_key" IS NOT NULL WHERE "is_system" <> ("system_key" IS NOT NULL);--> statement-breakpoint
UPDATE "stream_runs" SET "estimated_rows" = 0 WHERE "estimated_rows" < 0;--> statement-breakpoint
-- The next discovery lists such changes again.
DELETE FROM "schema_changes" WHERE ("before" IS NULL AND "after" IS NULL) OR ("subject" = 'field' AND "field_path" IS NULL);--> statement-breakpoint
-- Rows that outlived what an operator deleted, which no foreign key refused. They keep all that still exists.
UPDATE "users" SET "invited_by" = NULL
WHERE "invited_by" IS NOT NULL AND NOT EXISTS (SELECT FROM "users" p WHERE p."id" = "users"."invited_by");--> statement-breakpoint
UPDATE "account_connectors" SET "created_by" = NULL
WHERE "created_by" IS NOT NULL AND NOT EXISTS (SELECT FROM "users" p WHERE p."id" = "account_connectors"."created_by");--> statement-breakpoint
UPDATE "connections" SET "created_by" = NULL
WHERE "created_by" IS NOT NULL AND NOT EXISTS (SELECT FROM "users" p WHERE p."id" = "connections"."created_by");--> statement-breakpoint
UPDATE "connections" SET "updated_by" = NULL
WHERE "updated_by" IS NOT NULL AND NOT EXISTS (SELECT FROM "users" p WHERE p."id" = "connections"."updated_by");--> statement-breakpoint
UPDATE "custom_run_plans" SET "created_by" = NULL
WHERE "created_by" IS NOT NULL AND NOT EXISTS (SELECT FROM "users" p WHERE p."id" = "custom_run_plans"."created_by");--> statement-breakpoint
UPDATE "connection_runs" SET "triggered_by" = NULL
WHERE "triggered_by" IS NOT NULL AND NOT EXISTS (SELECT FROM "users" p WHERE p."id" = "connection_runs"."triggered_by");--> statement-breakpoint
UPDATE "connection_runs" SET "stop_requested_by" = NULL
WHERE "stop_requested_by" IS NOT NULL AND NOT EXISTS (SELECT FROM "users" p WHERE p."id" = "connection_runs"."stop_requested_by");--> statement-breakpoint
UPDATE "tasks" SET "created_by" = NULL
WHERE "created_by" IS NOT NULL AND NOT EXISTS (SELECT FROM "users" p WHERE p."id" = "tasks"."created_by");--> statement-breakpoint
UPDATE "tasks" SET "connection_id" = NULL
WHERE "connection_id" IS NOT NULL AND NOT EXISTS (SELECT FROM "connections" p WHERE p."id" = "tasks"."connection_id");--> statement-breakpoint
UPDATE "triggers" SET "created_by" = NULL
WHERE "created_by" IS NOT NULL AND NOT EXISTS (SELECT FROM "users" p WHERE p."id" = "triggers"."created_by");--> statement-breakpoint
UPDATE "cases" SET "acknowledged_by" = NULL
WHERE "acknowledged_by" IS NOT NULL AND NOT EXISTS (SELECT FROM "users" p WHERE p."id" = "cases"."acknowledged_by");--> statement-breakpoint
UPDATE "cases" SET "resolved_by" = NULL
WHERE "resolved_by" IS NOT NULL AND NOT EXISTS (SELECT FROM "users" p WHERE p."id" = "cases"."resolved_by");--> statement-breakpoint
UPDATE "deliveries" SET "case_id" = NULL
WHERE "case_id" IS NOT NULL AND NOT EXISTS (SELECT FROM "cases" p WHERE p."id" = "deliveries"."case_id");--> statement-breakpoint
UPDATE "trigger_matches" SET "case_id" = NULL
WHERE "case_id" IS NOT NULL AND NOT EXISTS (SELECT FROM "cases" p WHERE p."id" = "trigger_matches"."case_id");--> statement-breakpoint
UPDATE "connection_streams" c SET "account_id" = p."account_id" FROM "connections" p
WHERE p."id" = c."connection_id" AND NOT EXISTS (SELECT FROM "accounts" a WHERE a."id" = c."account_id");--> statement-breakpoint
UPDATE "schema_changes" c SET "account_id" = p."account_id" FROM "connections" p
WHERE p."id" = c."connection_id" AND NOT EXISTS (SELECT FROM "accounts" a WHERE a."id" = c."account_id");--> statement-breakpoint
UPDATE "custom_run_plans" c SET "account_id" = p."account_id" FROM "connections" p
WHERE p."id" = c."connection_id" AND NOT EXISTS (SELECT FROM "accounts" a WHERE a."id" = c."account_id");--> statement-breakpoint
UPDATE "connection_runs" c SET "account_id" = p."account_id" FROM "connections" p
WHERE p."id" = c."connection_id" AND NOT EXISTS (SELECT FROM "accounts" a WHERE a."id" = c."account_id");--> statement-breakpoint
UPDATE "stream_runs" c SET "account_id" = p."account_id" FROM "connection_runs" p
WHERE p."id" = c."connection_run_id" AND NOT EXISTS (SELECT FROM "accounts" a WHERE a."id" = c."account_id");--> statement-breakpoint
UPDATE "network_log_segments" c SET "account_id" = p."account_id" FROM "connection_runs" p
WHERE p."id" = c."connection_run_id" AND NOT EXISTS (SELECT FROM "accounts" a WHERE a."id" = c."account_id");--> statement-breakpoint
UPDATE "catalog_streams" c SET "account_id" = p."account_id" FROM "account_connectors" p
WHERE p."id" = c."account_connector_id" AND NOT EXISTS (SELECT FROM "accounts" a WHERE a."id" = c."account_id");--> statement-breakpoint
UPDATE "deliveries" c SET "account_id" = p."account_id" FROM "triggers" p
WHERE p."id" = c."trigger_id" AND NOT EXISTS (SELECT FROM "accounts" a WHERE a."id" = c."account_id");--> statement-breakpoint
UPDATE "stream_runs" c SET "connection_id" = p."connection_id" FROM "connection_runs" p
WHERE p."id" = c."connection_run_id" AND NOT EXISTS (SELECT FROM "connections" o WHERE o."id" = c."connection_id");--> statement-breakpoint
DELETE FROM "tasks" WHERE NOT EXISTS (SELECT FROM "account_connectors" p WHERE p."id" = "tasks"."account_connector_id");--> statement-breakpoint
DELETE FROM "chat_channel_slots" WHERE NOT EXISTS (SELECT FROM "account_connectors" p WHERE p."id" = "chat_channel_slots"."account_connector_id");--> statement-breakpoint
DELETE FROM "change_readers" WHERE NOT EXISTS (SELECT FROM "account_connectors" p WHERE p."id" = "change_readers"."source_id");--> statement-breakpoint
UPDATE "tasks" c SET "account_id" = p."account_id" FROM "account_connectors" p
WHERE p."id" = c."account_connector_id" AND NOT EXISTS (SELECT FROM "accounts" a WHERE a."id" = c."account_id");--> statement-breakpoint
DELETE FROM "events" WHERE NOT EXISTS (SELECT FROM "accounts" a WHERE a."id" = "events"."account_id");--> statement-breakpoint
DELETE FROM "usage_ledger" WHERE NOT EXISTS (SELECT FROM "accounts" a WHERE a."id" = "usage_ledger"."account_id");--> statement-breakpoint
DELETE FROM "plan_limit_notices" WHERE NOT EXISTS (SELECT FROM "accounts" a WHERE a."id" = "plan_limit_notices"."account_id");
