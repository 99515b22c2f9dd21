CREATE SEQUENCE "public"."stream_run_fence" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE TABLE "accounts" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"timezone" text DEFAULT 'UTC' NOT NULL,
	"plan_id" text DEFAULT 'self_hosted' NOT NULL,
	"payment_status" text DEFAULT 'active' NOT NULL,
	"billing_anchor" date DEFAULT current_date NOT NULL,
	"case_counter" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "api_keys" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"prefix" text NOT NULL,
	"hash" text NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp(3) with time zone NOT NULL,
	"revoked_at" timestamp(3) with time zone,
	"last_used_at" timestamp(3) with time zone,
	"announced_days" integer[] DEFAULT '{}' NOT NULL
);
--> statement-breakpoint
CREATE TABLE "roles" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid,
	"name" text NOT NULL,
	"description" text,
	"is_system" boolean DEFAULT false NOT NULL,
	"permissions" text[] NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "user_roles" (
	"user_id" uuid NOT NULL,
	"role_id" uuid NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "user_roles_user_id_role_id_pk" PRIMARY KEY("user_id","role_id")
);
--> statement-breakpoint
CREATE TABLE "users" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"email" text NOT NULL,
	"full_name" text NOT NULL,
	"status" text NOT NULL,
	"avatar_key" text,
	"avatar_updated_at" timestamp(3) with time zone,
	"timezone" text,
	"locale" text,
	"onboarding_state" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"notification_preferences" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"invited_by" uuid,
	"invited_at" timestamp(3) with time zone,
	"invitation_hash" text,
	"invitation_expires_at" timestamp(3) with time zone,
	"last_login_at" timestamp(3) with time zone,
	"last_api_request_at" timestamp(3) with time zone,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"deleted_at" timestamp(3) with time zone
);
--> statement-breakpoint
CREATE TABLE "events" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"event" text NOT NULL,
	"category" text NOT NULL,
	"severity" text NOT NULL,
	"occurred_at" timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"actor" jsonb NOT NULL,
	"resource" jsonb NOT NULL,
	"connection_id" uuid,
	"connection_run_id" uuid,
	"stream_run_id" uuid,
	"account_connector_id" uuid,
	"user_id" uuid,
	"summary" text NOT NULL,
	"payload" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"processing_status" text DEFAULT 'received' NOT NULL,
	"causation_depth" integer DEFAULT 0 NOT NULL,
	"matched_trigger_ids" uuid[] DEFAULT '{}' NOT NULL,
	"case_ids" uuid[] DEFAULT '{}' NOT NULL,
	"evaluation_attempts" integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tasks" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"status" text DEFAULT 'queued' NOT NULL,
	"account_connector_id" uuid NOT NULL,
	"connection_id" uuid,
	"parameters" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"result" jsonb,
	"error" jsonb,
	"created_by" uuid,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"finished_at" timestamp(3) with time zone
);
--> statement-breakpoint
CREATE TABLE "plan_limit_notices" (
	"account_id" uuid NOT NULL,
	"limit" text NOT NULL,
	"period_start" date NOT NULL,
	"threshold" integer NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "plan_limit_notices_account_id_limit_period_start_threshold_pk" PRIMARY KEY("account_id","limit","period_start","threshold")
);
--> statement-breakpoint
CREATE TABLE "usage_ledger" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"connection_id" uuid NOT NULL,
	"connection_run_id" uuid NOT NULL,
	"stream_run_id" uuid NOT NULL,
	"attempt" integer NOT NULL,
	"day" date NOT NULL,
	"kind" text NOT NULL,
	"stream_name" text NOT NULL,
	"rows_free" bigint NOT NULL,
	"rows_paid" bigint NOT NULL,
	"credits_used" bigint NOT NULL,
	"credits_free" bigint NOT NULL,
	"bytes_loaded" bigint NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "connection_streams" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"connection_id" uuid NOT NULL,
	"namespace" text,
	"name" text NOT NULL,
	"selected" boolean DEFAULT true NOT NULL,
	"sync_mode" text NOT NULL,
	"destination_sync_mode" text NOT NULL,
	"cursor_field" jsonb,
	"primary_key" jsonb,
	"destination_table" text,
	"backfill_days" integer,
	"fields" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"filters" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"mapping" jsonb,
	"dataset_sql" text,
	"state" jsonb,
	"state_version" bigint DEFAULT 0 NOT NULL,
	"cursor_updated_at" timestamp(3) with time zone,
	"row_count_last_run" bigint
);
--> statement-breakpoint
CREATE TABLE "connections" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"name" text NOT NULL,
	"description" text,
	"kind" text DEFAULT 'elt' NOT NULL,
	"source_id" uuid NOT NULL,
	"destination_id" uuid NOT NULL,
	"status" text DEFAULT 'active' NOT NULL,
	"status_reason" text,
	"schedule" jsonb NOT NULL,
	"next_run_at" timestamp(3) with time zone,
	"backfill_days" integer DEFAULT 0 NOT NULL,
	"start_date" date,
	"destination_schema" text,
	"table_prefix" text DEFAULT '' NOT NULL,
	"schema_change_policy" text DEFAULT 'propagate_columns' NOT NULL,
	"schema_change_status" text DEFAULT 'no_change' NOT NULL,
	"catalog_refreshed_at" timestamp(3) with time zone,
	"max_parallel_streams" integer DEFAULT 4 NOT NULL,
	"notify_on_failure" boolean DEFAULT true NOT NULL,
	"tags" text[] DEFAULT '{}' NOT NULL,
	"run_counter" integer DEFAULT 0 NOT NULL,
	"consecutive_failures" integer DEFAULT 0 NOT NULL,
	"last_succeeded_at" timestamp(3) with time zone,
	"last_failed_at" timestamp(3) with time zone,
	"created_by" uuid,
	"updated_by" uuid,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"revision" integer DEFAULT 1 NOT NULL,
	"deleted_at" timestamp(3) with time zone
);
--> statement-breakpoint
CREATE TABLE "account_connectors" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"name" text NOT NULL,
	"connector_type" text NOT NULL,
	"connector_name" text NOT NULL,
	"status" text NOT NULL,
	"status_reason" text,
	"status_message" text,
	"auth_method" text DEFAULT 'none' NOT NULL,
	"parameters" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"secrets" text,
	"ssh_tunnel" jsonb,
	"datasets" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"last_test" jsonb,
	"last_tested_at" timestamp(3) with time zone,
	"credentials_expire_at" timestamp(3) with time zone,
	"catalog_status" text DEFAULT 'never' NOT NULL,
	"catalog_refreshed_at" timestamp(3) with time zone,
	"failure_streak" integer DEFAULT 0 NOT NULL,
	"free_until" timestamp(3) with time zone,
	"created_by" uuid,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"revision" integer DEFAULT 1 NOT NULL,
	"deleted_at" timestamp(3) with time zone
);
--> statement-breakpoint
CREATE TABLE "catalog_streams" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"account_connector_id" uuid NOT NULL,
	"namespace" text,
	"name" text NOT NULL,
	"definition" jsonb NOT NULL,
	"overrides" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"change_status" text DEFAULT 'unchanged' NOT NULL,
	"discovered_at" timestamp(3) with time zone NOT NULL,
	"removed_at" timestamp(3) with time zone
);
--> statement-breakpoint
CREATE TABLE "custom_run_plans" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"connection_id" uuid NOT NULL,
	"connection_revision" integer NOT NULL,
	"plan_hash" text NOT NULL,
	"parameters" jsonb NOT NULL,
	"decision" jsonb NOT NULL,
	"created_by" uuid,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp(3) with time zone NOT NULL,
	"launched_at" timestamp(3) with time zone,
	"launch_response" jsonb,
	"completed_at" timestamp(3) with time zone
);
--> statement-breakpoint
CREATE TABLE "idempotency_keys" (
	"user_id" uuid NOT NULL,
	"key" text NOT NULL,
	"request_hash" text NOT NULL,
	"status" integer,
	"sealed_body" text,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "idempotency_keys_user_id_key_pk" PRIMARY KEY("user_id","key")
);
--> statement-breakpoint
CREATE TABLE "connection_runs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"connection_id" uuid NOT NULL,
	"number" integer NOT NULL,
	"status" text NOT NULL,
	"run_type" text NOT NULL,
	"trigger_type" text NOT NULL,
	"triggered_by" uuid,
	"parent_run_id" uuid,
	"rerun_of_run_id" uuid,
	"causation_depth" integer DEFAULT 0 NOT NULL,
	"plan_id" uuid,
	"chunk_index" integer,
	"chunk_count" integer,
	"window_start" date,
	"window_end" date,
	"update_cursor" boolean DEFAULT true NOT NULL,
	"custom_run_parameters" jsonb,
	"attempt" integer DEFAULT 1 NOT NULL,
	"max_attempts" integer DEFAULT 5 NOT NULL,
	"queued_at" timestamp(3) with time zone NOT NULL,
	"started_at" timestamp(3) with time zone,
	"finished_at" timestamp(3) with time zone,
	"stop_requested_at" timestamp(3) with time zone,
	"stop_requested_by" uuid,
	"stop_reason" text,
	"skip_reason" text,
	"error" jsonb,
	"warnings" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"credits_used" bigint DEFAULT 0 NOT NULL,
	"credits_free" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "network_log_segments" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"connection_run_id" uuid NOT NULL,
	"stream_run_id" uuid,
	"connector_type" text NOT NULL,
	"object_key" text NOT NULL,
	"entries" integer NOT NULL,
	"bytes" integer NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "stream_runs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"connection_id" uuid NOT NULL,
	"connection_run_id" uuid NOT NULL,
	"stream_id" uuid NOT NULL,
	"stream_name" text NOT NULL,
	"namespace" text,
	"status" text NOT NULL,
	"sync_mode" text NOT NULL,
	"destination_sync_mode" text NOT NULL,
	"destination_table" text,
	"attempt" integer DEFAULT 1 NOT NULL,
	"attempts_without_progress" integer DEFAULT 0 NOT NULL,
	"fence" bigint DEFAULT 0 NOT NULL,
	"dispatched_at" timestamp(3) with time zone,
	"heartbeat_at" timestamp(3) with time zone,
	"started_at" timestamp(3) with time zone,
	"finished_at" timestamp(3) with time zone,
	"rows_read" bigint DEFAULT 0 NOT NULL,
	"rows_loaded" bigint DEFAULT 0 NOT NULL,
	"rows_updated" bigint DEFAULT 0 NOT NULL,
	"rows_deleted" bigint DEFAULT 0 NOT NULL,
	"rows_rejected" bigint DEFAULT 0 NOT NULL,
	"bytes_read" bigint DEFAULT 0 NOT NULL,
	"bytes_loaded" bigint DEFAULT 0 NOT NULL,
	"requests_count" bigint DEFAULT 0 NOT NULL,
	"estimated_rows" bigint,
	"cursor_before" text,
	"cursor_after" text,
	"state_after" jsonb,
	"first_row_at" timestamp(3) with time zone,
	"rate_limited_until" timestamp(3) with time zone,
	"error" jsonb,
	"warnings" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "case_timeline" (
	"id" uuid PRIMARY KEY NOT NULL,
	"case_id" uuid NOT NULL,
	"at" timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"type" text NOT NULL,
	"actor" jsonb,
	"note" text
);
--> statement-breakpoint
CREATE TABLE "cases" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"number" integer NOT NULL,
	"title" text NOT NULL,
	"status" text NOT NULL,
	"severity" text NOT NULL,
	"trigger_id" uuid NOT NULL,
	"dedup_key" text NOT NULL,
	"group" jsonb NOT NULL,
	"connection_id" uuid,
	"account_connector_id" uuid,
	"event_count" integer DEFAULT 1 NOT NULL,
	"first_event_at" timestamp(3) with time zone NOT NULL,
	"last_event_at" timestamp(3) with time zone NOT NULL,
	"opened_at" timestamp(3) with time zone NOT NULL,
	"acknowledged_at" timestamp(3) with time zone,
	"acknowledged_by" uuid,
	"resolved_at" timestamp(3) with time zone,
	"resolved_by" uuid,
	"resolution" text,
	"reopened_count" integer DEFAULT 0 NOT NULL,
	"last_error" text,
	"latest_event_ids" uuid[] DEFAULT '{}' NOT NULL,
	"chat_threads" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "chat_channel_slots" (
	"account_connector_id" uuid NOT NULL,
	"channel_id" text NOT NULL,
	"next_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "chat_channel_slots_account_connector_id_channel_id_pk" PRIMARY KEY("account_connector_id","channel_id")
);
--> statement-breakpoint
CREATE TABLE "deliveries" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"event_id" uuid NOT NULL,
	"trigger_id" uuid NOT NULL,
	"case_id" uuid,
	"action_index" integer NOT NULL,
	"type" text NOT NULL,
	"reason" text NOT NULL,
	"status" text DEFAULT 'pending' NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"last_attempt_at" timestamp(3) with time zone,
	"next_attempt_at" timestamp(3) with time zone,
	"delivered_at" timestamp(3) with time zone,
	"error" text,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "trigger_groups" (
	"trigger_id" uuid NOT NULL,
	"group_key" text NOT NULL,
	"group" jsonb NOT NULL,
	"matched_at" text[] DEFAULT '{}' NOT NULL,
	"cooldown_until" timestamp(3) with time zone,
	"due_at" timestamp(3) with time zone,
	"event_id" uuid,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "trigger_groups_trigger_id_group_key_pk" PRIMARY KEY("trigger_id","group_key")
);
--> statement-breakpoint
CREATE TABLE "trigger_matches" (
	"event_id" uuid NOT NULL,
	"trigger_id" uuid NOT NULL,
	"fired" boolean NOT NULL,
	"case_id" uuid,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "trigger_matches_event_id_trigger_id_pk" PRIMARY KEY("event_id","trigger_id")
);
--> statement-breakpoint
CREATE TABLE "triggers" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"name" text NOT NULL,
	"description" text,
	"rule" text,
	"condition" jsonb,
	"normalized_rule" text NOT NULL,
	"actions" jsonb NOT NULL,
	"secrets" text,
	"enabled" boolean DEFAULT true NOT NULL,
	"event_types" text[],
	"matched_kinds" text[],
	"severity" text NOT NULL,
	"threshold" integer DEFAULT 1 NOT NULL,
	"within_seconds" integer DEFAULT 0 NOT NULL,
	"posture" text DEFAULT 'reactive' NOT NULL,
	"expect" jsonb,
	"group_by" text[] NOT NULL,
	"cooldown_seconds" integer DEFAULT 0 NOT NULL,
	"case_settings" jsonb NOT NULL,
	"is_system" boolean DEFAULT false NOT NULL,
	"system_key" text,
	"state" text DEFAULT 'idle' NOT NULL,
	"last_evaluated_at" timestamp(3) with time zone,
	"last_fired_at" timestamp(3) with time zone,
	"fire_count" integer DEFAULT 0 NOT NULL,
	"error_count" integer DEFAULT 0 NOT NULL,
	"consecutive_errors" integer DEFAULT 0 NOT NULL,
	"last_error" text,
	"created_by" uuid,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"deleted_at" timestamp(3) with time zone
);
--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "roles" ADD CONSTRAINT "roles_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "user_roles" ADD CONSTRAINT "user_roles_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "user_roles" ADD CONSTRAINT "user_roles_role_id_roles_id_fk" FOREIGN KEY ("role_id") REFERENCES "public"."roles"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "users" ADD CONSTRAINT "users_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connection_streams" ADD CONSTRAINT "connection_streams_connection_id_connections_id_fk" FOREIGN KEY ("connection_id") REFERENCES "public"."connections"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_source_id_account_connectors_id_fk" FOREIGN KEY ("source_id") REFERENCES "public"."account_connectors"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_destination_id_account_connectors_id_fk" FOREIGN KEY ("destination_id") REFERENCES "public"."account_connectors"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "account_connectors" ADD CONSTRAINT "account_connectors_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "catalog_streams" ADD CONSTRAINT "catalog_streams_account_connector_id_account_connectors_id_fk" FOREIGN KEY ("account_connector_id") REFERENCES "public"."account_connectors"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "custom_run_plans" ADD CONSTRAINT "custom_run_plans_connection_id_connections_id_fk" FOREIGN KEY ("connection_id") REFERENCES "public"."connections"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_connection_id_connections_id_fk" FOREIGN KEY ("connection_id") REFERENCES "public"."connections"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "network_log_segments" ADD CONSTRAINT "network_log_segments_connection_run_id_connection_runs_id_fk" FOREIGN KEY ("connection_run_id") REFERENCES "public"."connection_runs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "network_log_segments" ADD CONSTRAINT "network_log_segments_stream_run_id_stream_runs_id_fk" FOREIGN KEY ("stream_run_id") REFERENCES "public"."stream_runs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "stream_runs" ADD CONSTRAINT "stream_runs_connection_run_id_connection_runs_id_fk" FOREIGN KEY ("connection_run_id") REFERENCES "public"."connection_runs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "stream_runs" ADD CONSTRAINT "stream_runs_stream_id_connection_streams_id_fk" FOREIGN KEY ("stream_id") REFERENCES "public"."connection_streams"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "case_timeline" ADD CONSTRAINT "case_timeline_case_id_cases_id_fk" FOREIGN KEY ("case_id") REFERENCES "public"."cases"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "cases" ADD CONSTRAINT "cases_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "cases" ADD CONSTRAINT "cases_trigger_id_triggers_id_fk" FOREIGN KEY ("trigger_id") REFERENCES "public"."triggers"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_event_id_events_id_fk" FOREIGN KEY ("event_id") REFERENCES "public"."events"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_trigger_id_triggers_id_fk" FOREIGN KEY ("trigger_id") REFERENCES "public"."triggers"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "trigger_groups" ADD CONSTRAINT "trigger_groups_trigger_id_triggers_id_fk" FOREIGN KEY ("trigger_id") REFERENCES "public"."triggers"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "trigger_matches" ADD CONSTRAINT "trigger_matches_event_id_events_id_fk" FOREIGN KEY ("event_id") REFERENCES "public"."events"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "trigger_matches" ADD CONSTRAINT "trigger_matches_trigger_id_triggers_id_fk" FOREIGN KEY ("trigger_id") REFERENCES "public"."triggers"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "triggers" ADD CONSTRAINT "triggers_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "api_keys_hash" ON "api_keys" USING btree ("hash");--> statement-breakpoint
CREATE INDEX "api_keys_user" ON "api_keys" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "api_keys_expiry" ON "api_keys" USING btree ("expires_at") WHERE "api_keys"."revoked_at" is null and 0 <> all("api_keys"."announced_days");--> statement-breakpoint
CREATE UNIQUE INDEX "roles_name" ON "roles" USING btree (coalesce("account_id", '00000000-0000-0000-0000-000000000000'),lower("name"));--> statement-breakpoint
CREATE INDEX "user_roles_role" ON "user_roles" USING btree ("role_id");--> statement-breakpoint
CREATE UNIQUE INDEX "users_email" ON "users" USING btree ("account_id",lower("email")) WHERE "users"."deleted_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "users_invitation" ON "users" USING btree ("invitation_hash") WHERE "users"."invitation_hash" is not null;--> statement-breakpoint
CREATE INDEX "events_list" ON "events" USING btree ("account_id","occurred_at","id");--> statement-breakpoint
CREATE INDEX "events_kind" ON "events" USING btree ("account_id","event","occurred_at","id");--> statement-breakpoint
CREATE INDEX "events_connection" ON "events" USING btree ("account_id","connection_id","occurred_at","id") WHERE "events"."connection_id" is not null;--> statement-breakpoint
CREATE INDEX "events_unprocessed" ON "events" USING btree ("occurred_at") WHERE "events"."processing_status" in ('received', 'evaluating');--> statement-breakpoint
CREATE INDEX "tasks_live" ON "tasks" USING btree ("account_connector_id","kind") WHERE "tasks"."status" in ('queued', 'running');--> statement-breakpoint
CREATE UNIQUE INDEX "usage_ledger_attempt" ON "usage_ledger" USING btree ("stream_run_id","attempt");--> statement-breakpoint
CREATE INDEX "usage_ledger_day" ON "usage_ledger" USING btree ("account_id","day","connection_id");--> statement-breakpoint
CREATE UNIQUE INDEX "connection_streams_name" ON "connection_streams" USING btree ("connection_id",coalesce("namespace", ''),"name");--> statement-breakpoint
CREATE INDEX "connection_streams_mapped" ON "connection_streams" USING btree ("account_id","connection_id") WHERE "connection_streams"."fields" <> '[]'::jsonb or "connection_streams"."mapping" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "connections_name" ON "connections" USING btree ("account_id",lower("name")) WHERE "connections"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "connections_list" ON "connections" USING btree ("account_id","created_at","id") WHERE "connections"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "connections_status" ON "connections" USING btree ("account_id","status","created_at","id") WHERE "connections"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "connections_tags" ON "connections" USING gin ("tags") WHERE "connections"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "connections_due" ON "connections" USING btree ("next_run_at") WHERE "connections"."next_run_at" is not null and "connections"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "connections_source" ON "connections" USING btree ("source_id") WHERE "connections"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "connections_destination" ON "connections" USING btree ("destination_id") WHERE "connections"."deleted_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "account_connectors_name" ON "account_connectors" USING btree ("account_id","connector_type",lower("name")) WHERE "account_connectors"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "account_connectors_list" ON "account_connectors" USING btree ("account_id","created_at","id") WHERE "account_connectors"."deleted_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "catalog_streams_name" ON "catalog_streams" USING btree ("account_connector_id",coalesce("namespace", ''),"name");--> statement-breakpoint
CREATE INDEX "custom_run_plans_connection" ON "custom_run_plans" USING btree ("connection_id","created_at");--> statement-breakpoint
CREATE INDEX "idempotency_keys_age" ON "idempotency_keys" USING btree ("created_at");--> statement-breakpoint
CREATE UNIQUE INDEX "connection_runs_number" ON "connection_runs" USING btree ("connection_id","number");--> statement-breakpoint
CREATE UNIQUE INDEX "connection_runs_one_live" ON "connection_runs" USING btree ("connection_id") WHERE "connection_runs"."plan_id" is null and "connection_runs"."status" in ('queued', 'running', 'retrying', 'stopping');--> statement-breakpoint
CREATE INDEX "connection_runs_list" ON "connection_runs" USING btree ("connection_id","created_at","id");--> statement-breakpoint
CREATE INDEX "connection_runs_status" ON "connection_runs" USING btree ("connection_id","status","created_at","id");--> statement-breakpoint
CREATE INDEX "connection_runs_account" ON "connection_runs" USING btree ("account_id","created_at");--> statement-breakpoint
CREATE INDEX "connection_runs_plan" ON "connection_runs" USING btree ("plan_id","chunk_index") WHERE "connection_runs"."plan_id" is not null;--> statement-breakpoint
CREATE INDEX "connection_runs_live" ON "connection_runs" USING btree ("status","queued_at") WHERE "connection_runs"."status" in ('queued', 'running', 'retrying', 'stopping');--> statement-breakpoint
CREATE INDEX "network_log_segments_run" ON "network_log_segments" USING btree ("connection_run_id","stream_run_id","connector_type","id");--> statement-breakpoint
CREATE UNIQUE INDEX "stream_runs_stream" ON "stream_runs" USING btree ("connection_run_id","stream_id");--> statement-breakpoint
CREATE INDEX "stream_runs_live" ON "stream_runs" USING btree ("status","heartbeat_at") WHERE "stream_runs"."status" in ('pending', 'running', 'rate_limited', 'retrying');--> statement-breakpoint
CREATE INDEX "case_timeline_case" ON "case_timeline" USING btree ("case_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "cases_number" ON "cases" USING btree ("account_id","number");--> statement-breakpoint
CREATE UNIQUE INDEX "cases_one_live" ON "cases" USING btree ("account_id","dedup_key") WHERE "cases"."status" in ('open', 'acknowledged', 'suppressed');--> statement-breakpoint
CREATE INDEX "cases_list" ON "cases" USING btree ("account_id","created_at","id");--> statement-breakpoint
CREATE INDEX "cases_status" ON "cases" USING btree ("account_id","status","created_at","id");--> statement-breakpoint
CREATE INDEX "cases_trigger" ON "cases" USING btree ("trigger_id","status");--> statement-breakpoint
CREATE UNIQUE INDEX "deliveries_action" ON "deliveries" USING btree ("event_id","trigger_id","action_index");--> statement-breakpoint
CREATE INDEX "deliveries_case" ON "deliveries" USING btree ("case_id","id");--> statement-breakpoint
CREATE INDEX "deliveries_waiting" ON "deliveries" USING btree ("next_attempt_at") WHERE "deliveries"."status" in ('pending', 'retrying');--> statement-breakpoint
CREATE INDEX "deliveries_trigger" ON "deliveries" USING btree ("trigger_id") WHERE "deliveries"."status" in ('pending', 'retrying');--> statement-breakpoint
CREATE INDEX "trigger_groups_due" ON "trigger_groups" USING btree ("due_at") WHERE "trigger_groups"."due_at" is not null;--> statement-breakpoint
CREATE INDEX "trigger_matches_trigger" ON "trigger_matches" USING btree ("trigger_id","created_at");--> statement-breakpoint
CREATE UNIQUE INDEX "triggers_name" ON "triggers" USING btree ("account_id",lower("name")) WHERE "triggers"."deleted_at" is null and not "triggers"."is_system";--> statement-breakpoint
CREATE UNIQUE INDEX "triggers_system" ON "triggers" USING btree ("account_id","system_key") WHERE "triggers"."system_key" is not null;--> statement-breakpoint
CREATE INDEX "triggers_list" ON "triggers" USING btree ("account_id","created_at","id") WHERE "triggers"."deleted_at" is null;