ALTER TABLE "users" ADD CONSTRAINT "users_invited_by_users_id_fk" FOREIGN KEY ("invited_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "events" ADD CONSTRAINT "events_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tasks" ADD CONSTRAINT "tasks_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tasks" ADD CONSTRAINT "tasks_account_connector_id_account_connectors_id_fk" FOREIGN KEY ("account_connector_id") REFERENCES "public"."account_connectors"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tasks" ADD CONSTRAINT "tasks_connection_id_connections_id_fk" FOREIGN KEY ("connection_id") REFERENCES "public"."connections"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tasks" ADD CONSTRAINT "tasks_created_by_users_id_fk" FOREIGN KEY ("created_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "plan_limit_notices" ADD CONSTRAINT "plan_limit_notices_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "usage_ledger" ADD CONSTRAINT "usage_ledger_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "change_readers" ADD CONSTRAINT "change_readers_source_id_account_connectors_id_fk" FOREIGN KEY ("source_id") REFERENCES "public"."account_connectors"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connection_streams" ADD CONSTRAINT "connection_streams_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_created_by_users_id_fk" FOREIGN KEY ("created_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_updated_by_users_id_fk" FOREIGN KEY ("updated_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "schema_changes" ADD CONSTRAINT "schema_changes_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "account_connectors" ADD CONSTRAINT "account_connectors_created_by_users_id_fk" FOREIGN KEY ("created_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "catalog_streams" ADD CONSTRAINT "catalog_streams_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "custom_run_plans" ADD CONSTRAINT "custom_run_plans_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "custom_run_plans" ADD CONSTRAINT "custom_run_plans_created_by_users_id_fk" FOREIGN KEY ("created_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "idempotency_keys" ADD CONSTRAINT "idempotency_keys_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_triggered_by_users_id_fk" FOREIGN KEY ("triggered_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_rerun_of_run_id_connection_runs_id_fk" FOREIGN KEY ("rerun_of_run_id") REFERENCES "public"."connection_runs"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_custom_run_plan_id_custom_run_plans_id_fk" FOREIGN KEY ("custom_run_plan_id") REFERENCES "public"."custom_run_plans"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_stop_requested_by_users_id_fk" FOREIGN KEY ("stop_requested_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "network_log_segments" ADD CONSTRAINT "network_log_segments_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "stream_runs" ADD CONSTRAINT "stream_runs_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "stream_runs" ADD CONSTRAINT "stream_runs_connection_id_connections_id_fk" FOREIGN KEY ("connection_id") REFERENCES "public"."connections"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "cases" ADD CONSTRAINT "cases_acknowledged_by_users_id_fk" FOREIGN KEY ("acknowledged_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "cases" ADD CONSTRAINT "cases_resolved_by_users_id_fk" FOREIGN KEY ("resolved_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "chat_channel_slots" ADD CONSTRAINT "chat_channel_slots_account_connector_id_account_connectors_id_fk" FOREIGN KEY ("account_connector_id") REFERENCES "public"."account_connectors"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_case_id_cases_id_fk" FOREIGN KEY ("case_id") REFERENCES "public"."cases"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "trigger_matches" ADD CONSTRAINT "trigger_matches_case_id_cases_id_fk" FOREIGN KEY ("case_id") REFERENCES "public"."cases"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "triggers" ADD CONSTRAINT "triggers_created_by_users_id_fk" FOREIGN KEY ("created_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "accounts" ADD CONSTRAINT "accounts_plan_id_known" CHECK ("accounts"."plan_id" in ('self_hosted', 'free', 'starter', 'pro', 'enterprise'));--> statement-breakpoint
ALTER TABLE "accounts" ADD CONSTRAINT "accounts_payment_status_known" CHECK ("accounts"."payment_status" in ('active', 'trial', 'grace', 'ended', 'overdue'));--> statement-breakpoint
ALTER TABLE "accounts" ADD CONSTRAINT "accounts_case_counter" CHECK ("accounts"."case_counter" >= 0);--> statement-breakpoint
ALTER TABLE "roles" ADD CONSTRAINT "roles_owner" CHECK ("roles"."is_system" = ("roles"."account_id" is null));--> statement-breakpoint
ALTER TABLE "users" ADD CONSTRAINT "users_status_known" CHECK ("users"."status" in ('invited', 'active', 'disabled'));--> statement-breakpoint
ALTER TABLE "users" ADD CONSTRAINT "users_email" CHECK ("users"."email" like '%_@_%');--> statement-breakpoint
ALTER TABLE "users" ADD CONSTRAINT "users_invitation" CHECK ("users"."invitation_hash" is null or "users"."invitation_expires_at" is not null);--> statement-breakpoint
ALTER TABLE "users" ADD CONSTRAINT "users_avatar" CHECK ("users"."avatar_key" is null or "users"."avatar_updated_at" is not null);--> statement-breakpoint
ALTER TABLE "events" ADD CONSTRAINT "events_category_known" CHECK ("events"."category" in ('connection', 'run', 'stream', 'account_connector', 'user', 'role', 'billing', 'automation', 'schema', 'api_key'));--> statement-breakpoint
ALTER TABLE "events" ADD CONSTRAINT "events_severity_known" CHECK ("events"."severity" in ('low', 'info', 'warning', 'high', 'critical'));--> statement-breakpoint
ALTER TABLE "events" ADD CONSTRAINT "events_processing_status_known" CHECK ("events"."processing_status" in ('received', 'evaluating', 'processed', 'failed'));--> statement-breakpoint
ALTER TABLE "events" ADD CONSTRAINT "events_event" CHECK ("events"."event" ~ '^[a-z]+(_[a-z]+)*$');--> statement-breakpoint
ALTER TABLE "events" ADD CONSTRAINT "events_actor" CHECK (coalesce("events"."actor" ->> 'type', '') in ('user', 'schedule', 'system', 'automation'));--> statement-breakpoint
ALTER TABLE "events" ADD CONSTRAINT "events_counts" CHECK ("events"."causation_depth" >= 0 and "events"."evaluation_attempts" >= 0);--> statement-breakpoint
ALTER TABLE "tasks" ADD CONSTRAINT "tasks_kind_known" CHECK ("tasks"."kind" in ('discover_catalog', 'export_metadata'));--> statement-breakpoint
ALTER TABLE "tasks" ADD CONSTRAINT "tasks_status_known" CHECK ("tasks"."status" in ('queued', 'running', 'succeeded', 'failed'));--> statement-breakpoint
ALTER TABLE "tasks" ADD CONSTRAINT "tasks_finished" CHECK (("tasks"."finished_at" is not null) = ("tasks"."status" in ('succeeded', 'failed')));--> statement-breakpoint
ALTER TABLE "tasks" ADD CONSTRAINT "tasks_attempts" CHECK ("tasks"."attempts" >= 0);--> statement-breakpoint
ALTER TABLE "tasks" ADD CONSTRAINT "tasks_failed" CHECK (("tasks"."error" is not null) = ("tasks"."status" = 'failed'));--> statement-breakpoint
ALTER TABLE "plan_limit_notices" ADD CONSTRAINT "plan_limit_notices_limit_known" CHECK ("plan_limit_notices"."limit" in ('max_connections', 'max_sources', 'max_destinations', 'max_users', 'max_triggers', 'credits_included'));--> statement-breakpoint
ALTER TABLE "plan_limit_notices" ADD CONSTRAINT "plan_limit_notices_threshold" CHECK ("plan_limit_notices"."threshold" between 1 and 100);--> statement-breakpoint
ALTER TABLE "usage_ledger" ADD CONSTRAINT "usage_ledger_kind_known" CHECK ("usage_ledger"."kind" in ('elt', 'reverse_etl'));--> statement-breakpoint
ALTER TABLE "usage_ledger" ADD CONSTRAINT "usage_ledger_counts" CHECK ("usage_ledger"."attempt" >= 1 and "usage_ledger"."rows_free" >= 0 and "usage_ledger"."rows_paid" >= 0 and "usage_ledger"."credits_used" >= 0
        and "usage_ledger"."credits_free" >= 0 and "usage_ledger"."bytes_loaded" >= 0);--> statement-breakpoint
ALTER TABLE "change_readers" ADD CONSTRAINT "change_readers_counts" CHECK ("change_readers"."lag_bytes" >= 0 and "change_readers"."failures" >= 0);--> statement-breakpoint
ALTER TABLE "connection_streams" ADD CONSTRAINT "connection_streams_sync_mode_known" CHECK ("connection_streams"."sync_mode" in ('full_refresh', 'incremental'));--> statement-breakpoint
ALTER TABLE "connection_streams" ADD CONSTRAINT "connection_streams_destination_sync_mode_known" CHECK ("connection_streams"."destination_sync_mode" in ('append', 'overwrite', 'append_dedup', 'update', 'soft_delete'));--> statement-breakpoint
ALTER TABLE "connection_streams" ADD CONSTRAINT "connection_streams_backfill_days" CHECK ("connection_streams"."backfill_days" between 0 and 365);--> statement-breakpoint
ALTER TABLE "connection_streams" ADD CONSTRAINT "connection_streams_counts" CHECK ("connection_streams"."state_version" >= 0 and "connection_streams"."row_count_last_run" >= 0);--> statement-breakpoint
ALTER TABLE "connection_streams" ADD CONSTRAINT "connection_streams_lists" CHECK (jsonb_typeof("connection_streams"."fields") = 'array' and jsonb_typeof("connection_streams"."filters") = 'array'
        and jsonb_typeof(coalesce("connection_streams"."mapping", '[]')) = 'array');--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_kind_known" CHECK ("connections"."kind" in ('elt', 'reverse_etl'));--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_status_known" CHECK ("connections"."status" in ('active', 'paused', 'auto_disabled', 'locked'));--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_schema_change_policy_known" CHECK ("connections"."schema_change_policy" in ('ignore', 'propagate_columns', 'propagate_fully', 'disable_connection'));--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_schema_change_status_known" CHECK ("connections"."schema_change_status" in ('no_change', 'non_breaking', 'breaking'));--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_rejected_rows_policy_known" CHECK ("connections"."rejected_rows_policy" in ('fail', 'keep'));--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_sides" CHECK ("connections"."source_id" <> "connections"."destination_id");--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_lock" CHECK ("connections"."locked_from" is null or "connections"."status" = 'locked');--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_schedule" CHECK (coalesce("connections"."schedule" ->> 'type', '') in ('manual', 'interval', 'cron'));--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_next_run" CHECK ("connections"."next_run_at" is null or "connections"."deleted_at" is null);--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_parallel_streams" CHECK ("connections"."max_parallel_streams" between 1 and 50);--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_backfill_days" CHECK ("connections"."backfill_days" between 0 and 365);--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_counts" CHECK ("connections"."max_rejected_rows" >= 0 and "connections"."run_counter" >= 0 and "connections"."consecutive_failures" >= 0
        and "connections"."revision" >= 1);--> statement-breakpoint
ALTER TABLE "schema_changes" ADD CONSTRAINT "schema_changes_subject_known" CHECK ("schema_changes"."subject" in ('stream', 'field', 'primary_key', 'cursor'));--> statement-breakpoint
ALTER TABLE "schema_changes" ADD CONSTRAINT "schema_changes_sides" CHECK ("schema_changes"."before" is not null or "schema_changes"."after" is not null);--> statement-breakpoint
ALTER TABLE "schema_changes" ADD CONSTRAINT "schema_changes_field" CHECK ("schema_changes"."subject" <> 'field' or "schema_changes"."field_path" is not null);--> statement-breakpoint
ALTER TABLE "account_connectors" ADD CONSTRAINT "account_connectors_connector_type_known" CHECK ("account_connectors"."connector_type" in ('source', 'destination'));--> statement-breakpoint
ALTER TABLE "account_connectors" ADD CONSTRAINT "account_connectors_status_known" CHECK ("account_connectors"."status" in ('pending_auth', 'pending_test', 'active', 'broken', 'needs_reauth', 'disabled'));--> statement-breakpoint
ALTER TABLE "account_connectors" ADD CONSTRAINT "account_connectors_auth_method_known" CHECK ("account_connectors"."auth_method" in ('none', 'api_key', 'basic', 'oauth2', 'key_pair', 'ssh_key', 'service_account'));--> statement-breakpoint
ALTER TABLE "account_connectors" ADD CONSTRAINT "account_connectors_catalog_status_known" CHECK ("account_connectors"."catalog_status" in ('never', 'pending', 'ready', 'failed'));--> statement-breakpoint
ALTER TABLE "account_connectors" ADD CONSTRAINT "account_connectors_counts" CHECK ("account_connectors"."failure_streak" >= 0 and "account_connectors"."revision" >= 1);--> statement-breakpoint
ALTER TABLE "account_connectors" ADD CONSTRAINT "account_connectors_parameters" CHECK (jsonb_typeof("account_connectors"."parameters") = 'object');--> statement-breakpoint
ALTER TABLE "account_connectors" ADD CONSTRAINT "account_connectors_catalog" CHECK ("account_connectors"."catalog_status" <> 'ready' or "account_connectors"."catalog_refreshed_at" is not null);--> statement-breakpoint
ALTER TABLE "catalog_streams" ADD CONSTRAINT "catalog_streams_change_status_known" CHECK ("catalog_streams"."change_status" in ('unchanged', 'added', 'removed', 'updated'));--> statement-breakpoint
ALTER TABLE "catalog_streams" ADD CONSTRAINT "catalog_streams_definition" CHECK (jsonb_typeof("catalog_streams"."definition") = 'object');--> statement-breakpoint
ALTER TABLE "custom_run_plans" ADD CONSTRAINT "custom_run_plans_revision" CHECK ("custom_run_plans"."connection_revision" >= 1);--> statement-breakpoint
ALTER TABLE "custom_run_plans" ADD CONSTRAINT "custom_run_plans_hash" CHECK ("custom_run_plans"."plan_hash" ~ '^[0-9a-f]{64}$');--> statement-breakpoint
ALTER TABLE "custom_run_plans" ADD CONSTRAINT "custom_run_plans_expiry" CHECK ("custom_run_plans"."expires_at" > "custom_run_plans"."created_at");--> statement-breakpoint
ALTER TABLE "custom_run_plans" ADD CONSTRAINT "custom_run_plans_launch" CHECK (("custom_run_plans"."launched_at" is null) = ("custom_run_plans"."launch_response" is null) and jsonb_typeof("custom_run_plans"."launch_response") = 'array');--> statement-breakpoint
ALTER TABLE "idempotency_keys" ADD CONSTRAINT "idempotency_keys_status" CHECK ("idempotency_keys"."status" between 200 and 599);--> statement-breakpoint
ALTER TABLE "idempotency_keys" ADD CONSTRAINT "idempotency_keys_answer" CHECK (("idempotency_keys"."status" is null) = ("idempotency_keys"."sealed_body" is null));--> statement-breakpoint
ALTER TABLE "idempotency_keys" ADD CONSTRAINT "idempotency_keys_key" CHECK (length("idempotency_keys"."key") between 1 and 255);--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_status_known" CHECK ("connection_runs"."status" in ('queued', 'running', 'retrying', 'stopping', 'succeeded', 'partially_succeeded', 'failed', 'stopped', 'skipped'));--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_run_type_known" CHECK ("connection_runs"."run_type" in ('plain', 'custom', 'full_refresh'));--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_trigger_type_known" CHECK ("connection_runs"."trigger_type" in ('schedule', 'manual', 'api', 'rerun', 'custom_plan', 'automation'));--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_finished" CHECK (("connection_runs"."finished_at" is not null) = ("connection_runs"."status" not in ('queued', 'running', 'retrying', 'stopping')));--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_skipped" CHECK (("connection_runs"."skip_reason" is not null) = ("connection_runs"."status" = 'skipped'));--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_stopping" CHECK ("connection_runs"."status" <> 'stopping' or "connection_runs"."stop_requested_at" is not null);--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_window" CHECK ("connection_runs"."window_start" <= "connection_runs"."window_end");--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_chunk" CHECK (("connection_runs"."custom_run_plan_id" is null) = ("connection_runs"."chunk_index" is null)
        and ("connection_runs"."custom_run_plan_id" is null) = ("connection_runs"."chunk_count" is null)
        and ("connection_runs"."chunk_index" is null or "connection_runs"."chunk_index" between 0 and "connection_runs"."chunk_count" - 1));--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_rerun" CHECK ("connection_runs"."rerun_of_run_id" <> "connection_runs"."id");--> statement-breakpoint
ALTER TABLE "connection_runs" ADD CONSTRAINT "connection_runs_counts" CHECK ("connection_runs"."number" >= 1 and "connection_runs"."attempt" >= 1 and "connection_runs"."causation_depth" >= 0 and "connection_runs"."credits_used" >= 0
        and "connection_runs"."credits_free" >= 0 and "connection_runs"."credits_reserved" >= 0);--> statement-breakpoint
ALTER TABLE "network_log_segments" ADD CONSTRAINT "network_log_segments_connector_type_known" CHECK ("network_log_segments"."connector_type" in ('source', 'destination'));--> statement-breakpoint
ALTER TABLE "network_log_segments" ADD CONSTRAINT "network_log_segments_size" CHECK ("network_log_segments"."entries" >= 1 and "network_log_segments"."bytes" >= 1);--> statement-breakpoint
ALTER TABLE "stream_runs" ADD CONSTRAINT "stream_runs_status_known" CHECK ("stream_runs"."status" in ('pending', 'running', 'rate_limited', 'retrying', 'succeeded', 'failed', 'stopped', 'skipped'));--> statement-breakpoint
ALTER TABLE "stream_runs" ADD CONSTRAINT "stream_runs_sync_mode_known" CHECK ("stream_runs"."sync_mode" in ('full_refresh', 'incremental'));--> statement-breakpoint
ALTER TABLE "stream_runs" ADD CONSTRAINT "stream_runs_destination_sync_mode_known" CHECK ("stream_runs"."destination_sync_mode" in ('append', 'overwrite', 'append_dedup', 'update', 'soft_delete'));--> statement-breakpoint
ALTER TABLE "stream_runs" ADD CONSTRAINT "stream_runs_finished" CHECK (("stream_runs"."finished_at" is not null) = ("stream_runs"."status" not in ('pending', 'retrying', 'running', 'rate_limited')));--> statement-breakpoint
ALTER TABLE "stream_runs" ADD CONSTRAINT "stream_runs_held" CHECK ("stream_runs"."status" not in ('running', 'rate_limited') or ("stream_runs"."fence" > 0 and "stream_runs"."heartbeat_at" is not null));--> statement-breakpoint
ALTER TABLE "stream_runs" ADD CONSTRAINT "stream_runs_counts" CHECK ("stream_runs"."attempt" >= 1 and "stream_runs"."attempts_without_progress" >= 0 and "stream_runs"."worker_deaths" >= 0 and "stream_runs"."fence" >= 0 and "stream_runs"."rows_read" >= 0
        and "stream_runs"."rows_loaded" >= 0 and "stream_runs"."rows_updated" >= 0 and "stream_runs"."rows_deleted" >= 0 and "stream_runs"."rows_rejected" >= 0
        and "stream_runs"."bytes_read" >= 0 and "stream_runs"."bytes_loaded" >= 0 and "stream_runs"."requests_count" >= 0
        and "stream_runs"."log_lag_bytes" >= 0 and "stream_runs"."estimated_rows" >= 0);--> statement-breakpoint
ALTER TABLE "sessions" ADD CONSTRAINT "sessions_expiry" CHECK ("sessions"."expires_at" > "sessions"."created_at");--> statement-breakpoint
ALTER TABLE "case_timeline" ADD CONSTRAINT "case_timeline_type_known" CHECK ("case_timeline"."type" in ('opened', 'reopened', 'raised', 'acknowledged', 'suppressed', 'resolved', 'action_failed'));--> statement-breakpoint
ALTER TABLE "cases" ADD CONSTRAINT "cases_status_known" CHECK ("cases"."status" in ('open', 'acknowledged', 'resolved', 'suppressed'));--> statement-breakpoint
ALTER TABLE "cases" ADD CONSTRAINT "cases_severity_known" CHECK ("cases"."severity" in ('low', 'info', 'warning', 'high', 'critical'));--> statement-breakpoint
ALTER TABLE "cases" ADD CONSTRAINT "cases_resolution_known" CHECK ("cases"."resolution" in ('manual', 'auto', 'trigger_deleted'));--> statement-breakpoint
ALTER TABLE "cases" ADD CONSTRAINT "cases_resolved" CHECK (("cases"."status" = 'resolved') = ("cases"."resolved_at" is not null)
        and ("cases"."status" = 'resolved') = ("cases"."resolution" is not null));--> statement-breakpoint
ALTER TABLE "cases" ADD CONSTRAINT "cases_acknowledged" CHECK ("cases"."status" <> 'acknowledged' or "cases"."acknowledged_at" is not null);--> statement-breakpoint
ALTER TABLE "cases" ADD CONSTRAINT "cases_counts" CHECK ("cases"."number" >= 1 and "cases"."event_count" >= 1 and "cases"."reopened_count" >= 0);--> statement-breakpoint
ALTER TABLE "cases" ADD CONSTRAINT "cases_events" CHECK ("cases"."first_event_at" <= "cases"."last_event_at");--> statement-breakpoint
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_type_known" CHECK ("deliveries"."type" in ('send_chat_message', 'send_email', 'call_webhook', 'pause_connection', 'run_connection', 'rerun_run'));--> statement-breakpoint
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_reason_known" CHECK ("deliveries"."reason" in ('fired', 'opened', 'reopened', 'raised', 'joined', 'repeated', 'summary', 'resolved'));--> statement-breakpoint
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_status_known" CHECK ("deliveries"."status" in ('pending', 'retrying', 'delivered', 'failed', 'suppressed', 'cancelled'));--> statement-breakpoint
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_delivered" CHECK (("deliveries"."delivered_at" is not null) = ("deliveries"."status" = 'delivered'));--> statement-breakpoint
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_counts" CHECK ("deliveries"."action_index" >= 0 and "deliveries"."attempts" >= 0);--> statement-breakpoint
ALTER TABLE "triggers" ADD CONSTRAINT "triggers_severity_known" CHECK ("triggers"."severity" in ('low', 'info', 'warning', 'high', 'critical'));--> statement-breakpoint
ALTER TABLE "triggers" ADD CONSTRAINT "triggers_posture_known" CHECK ("triggers"."posture" in ('reactive', 'proactive'));--> statement-breakpoint
ALTER TABLE "triggers" ADD CONSTRAINT "triggers_state_known" CHECK ("triggers"."state" in ('idle', 'pending', 'triggered', 'cooldown', 'errored', 'auto_disabled'));--> statement-breakpoint
ALTER TABLE "triggers" ADD CONSTRAINT "triggers_rule" CHECK (("triggers"."rule" is null) <> ("triggers"."condition" is null));--> statement-breakpoint
ALTER TABLE "triggers" ADD CONSTRAINT "triggers_system" CHECK ("triggers"."is_system" = ("triggers"."system_key" is not null));--> statement-breakpoint
ALTER TABLE "triggers" ADD CONSTRAINT "triggers_lists" CHECK (jsonb_typeof("triggers"."actions") = 'array' and jsonb_typeof("triggers"."case_settings") = 'object');--> statement-breakpoint
ALTER TABLE "triggers" ADD CONSTRAINT "triggers_counts" CHECK ("triggers"."threshold" >= 1 and "triggers"."within_seconds" >= 0 and "triggers"."cooldown_seconds" >= 0 and "triggers"."fire_count" >= 0
        and "triggers"."error_count" >= 0 and "triggers"."consecutive_errors" >= 0);