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
DELETE FROM "sessions" WHERE "expires_at" <= "created_at";
