-- A database of the version before 0004: each table with rows as that version writes them, and, marked with the
-- constraint that refuses them, rows as its crashes and an operator's deletes left them. Ids above 90 do not exist.
create function pg_temp.u(n int) returns uuid language sql as $$ select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
create function pg_temp.d(n int) returns timestamptz language sql as $$ select timestamptz '2026-01-01 00:00:00+00' + n * interval '1 day' $$;
set timezone = 'UTC';
insert into accounts (id, name, case_counter) values (pg_temp.u(1), 'Acme', 4);
insert into roles (id, account_id, name, is_system, permissions) values
  (pg_temp.u(1), null, 'Administrator', true, '{runs.read}'),
  (pg_temp.u(2), pg_temp.u(1), 'Analyst', false, '{runs.read}'),
  (pg_temp.u(3), pg_temp.u(1), 'roles_owner', true, '{}');
insert into users (id, account_id, email, full_name, status, updated_at, invited_by, invitation_hash, avatar_key) values
  (pg_temp.u(1), pg_temp.u(1), 'ada@example.com', 'Ada', 'active', pg_temp.d(1), null, null, null),
  (pg_temp.u(2), pg_temp.u(1), 'users_invitation@example.com', 'Bo', 'invited', pg_temp.d(2), pg_temp.u(98), 'hash', null),
  (pg_temp.u(3), pg_temp.u(1), 'users_avatar@example.com', 'Cy', 'disabled', pg_temp.d(3), pg_temp.u(1), null, 'avatars/3');
insert into user_roles (user_id, role_id) values (pg_temp.u(1), pg_temp.u(1)), (pg_temp.u(2), pg_temp.u(2));
insert into api_keys (id, account_id, user_id, prefix, hash, expires_at) values
  (pg_temp.u(1), pg_temp.u(1), pg_temp.u(1), 'dp_1', 'hash', pg_temp.d(90));
insert into sessions (id, api_key_id, hash, created_at, expires_at) values
  (pg_temp.u(1), pg_temp.u(1), 'kept', pg_temp.d(1), pg_temp.d(31)),
  (pg_temp.u(2), pg_temp.u(1), 'sessions_expiry', pg_temp.d(1), pg_temp.d(1));
insert into account_connectors (id, account_id, name, connector_type, connector_name, status, parameters, catalog_status, catalog_refreshed_at, created_by) values
  (pg_temp.u(1), pg_temp.u(1), 'Shop', 'source', 'postgres', 'active', '{"host": "db"}', 'ready', pg_temp.d(1), pg_temp.u(1)),
  (pg_temp.u(2), pg_temp.u(1), 'Warehouse', 'destination', 'duckdb', 'broken', '{"path": "w"}', 'never', null, pg_temp.u(98)),
  (pg_temp.u(3), pg_temp.u(1), 'account_connectors_catalog', 'source', 'file', 'active', '{}', 'ready', null, pg_temp.u(1));
insert into catalog_streams (id, account_id, account_connector_id, name, definition, discovered_at) values
  (pg_temp.u(1), pg_temp.u(1), pg_temp.u(1), 'orders', '{"name": "orders"}', pg_temp.d(1)),
  (pg_temp.u(2), pg_temp.u(99), pg_temp.u(1), 'items', '{"name": "items"}', pg_temp.d(1));
insert into connections (id, account_id, name, source_id, destination_id, status, schedule, next_run_at, locked_from, deleted_at, created_by, updated_by, run_counter) values
  (pg_temp.u(1), pg_temp.u(1), 'Shop to warehouse', pg_temp.u(1), pg_temp.u(2), 'active', '{"type": "manual"}', null, null, null, pg_temp.u(98), pg_temp.u(98), 20),
  (pg_temp.u(2), pg_temp.u(1), 'connections_lock', pg_temp.u(1), pg_temp.u(2), 'paused', '{"type": "interval", "every": 1, "unit": "hours"}', pg_temp.d(9), '{"status": "active"}', null, pg_temp.u(1), null, 1),
  (pg_temp.u(3), pg_temp.u(1), 'connections_next_run', pg_temp.u(1), pg_temp.u(2), 'active', '{"type": "cron", "expression": "0 1 * * *"}', pg_temp.d(9), null, pg_temp.d(5), null, null, 0);
insert into connection_streams (id, account_id, connection_id, name, sync_mode, destination_sync_mode, state, state_version) values
  (pg_temp.u(1), pg_temp.u(1), pg_temp.u(1), 'orders', 'incremental', 'append', '{"cursor": "7"}', 3),
  (pg_temp.u(2), pg_temp.u(99), pg_temp.u(1), 'items', 'full_refresh', 'overwrite', null, 0);
insert into change_readers (stream_id, source_id, lag_bytes, next_look_at) values
  (pg_temp.u(1), pg_temp.u(1), 12, pg_temp.d(1)), (pg_temp.u(2), pg_temp.u(97), 5, pg_temp.d(1));
insert into schema_changes (id, account_id, connection_id, stream_name, subject, field_path, before, after, breaking) values
  (pg_temp.u(1), pg_temp.u(1), pg_temp.u(1), 'orders', 'field', '["id"]', '{"type": "integer"}', null, true),
  (pg_temp.u(2), pg_temp.u(99), pg_temp.u(1), 'orders', 'stream', null, null, '{"name": "orders"}', false),
  (pg_temp.u(3), pg_temp.u(1), pg_temp.u(1), 'schema_changes_field', 'field', null, null, '{}', false),
  (pg_temp.u(4), pg_temp.u(1), pg_temp.u(1), 'schema_changes_sides', 'stream', null, null, null, false);
insert into custom_run_plans (id, account_id, connection_id, connection_revision, plan_hash, parameters, decision, created_by, created_at, expires_at, launched_at, launch_response) values
  (pg_temp.u(1), pg_temp.u(1), pg_temp.u(1), 1, repeat('a', 64), '{}', '{}', pg_temp.u(98), pg_temp.d(1), pg_temp.d(2), pg_temp.d(1), '{"custom_run_plan_id": "one"}'),
  (pg_temp.u(2), pg_temp.u(99), pg_temp.u(1), 1, repeat('b', 64), '{}', '{}', pg_temp.u(1), pg_temp.d(1), pg_temp.d(2), null, null);
insert into connection_runs (id, account_id, connection_id, number, status, run_type, trigger_type, queued_at, updated_at, finished_at, skip_reason, stop_requested_at, window_start, window_end, custom_run_plan_id, chunk_index, chunk_count, rerun_of_run_id, triggered_by, stop_requested_by)
select pg_temp.u(r.id), pg_temp.u(r.account), pg_temp.u(r.connection), r.id, r.status, 'plain', 'manual', pg_temp.d(1), pg_temp.d(2),
  case when r.finished then pg_temp.d(2) end, r.skip, case when r.stop then pg_temp.d(1) end, r.starts::date, r.ends::date,
  pg_temp.u(r.plan), r.chunk, r.chunks, pg_temp.u(r.rerun), pg_temp.u(r.by), pg_temp.u(r.by)
from (values
  (1, 1, 1, 'succeeded', true, null, false, null, null, null, null, null, null, 1),
  (2, 1, 1, 'running', false, null, false, null, null, null, null, null, null, 1),
  (3, 1, 1, 'skipped', true, 'overlap', false, null, null, null, null, null, null, null),
  (4, 1, 1, 'succeeded', true, null, false, '2026-01-01', '2026-01-08', 1, 0, 2, null, 1),
  (5, 1, 1, 'stopped', true, null, true, null, null, null, null, null, 1, 1),
  (6, 1, 1, 'failed', false, null, false, null, null, null, null, null, null, 1), -- connection_runs_finished
  (7, 1, 2, 'queued', true, null, false, null, null, null, null, null, null, 1), -- connection_runs_finished
  (8, 1, 1, 'failed', true, 'overlap', false, null, null, null, null, null, null, 1), -- connection_runs_skipped
  (9, 1, 1, 'skipped', true, null, false, null, null, null, null, null, null, null), -- connection_runs_skipped
  (10, 1, 3, 'stopping', false, null, false, null, null, null, null, null, null, 1), -- connection_runs_stopping
  (11, 1, 1, 'succeeded', true, null, false, '2026-01-08', '2026-01-01', null, null, null, null, 1), -- connection_runs_window
  (12, 1, 1, 'succeeded', true, null, false, null, null, 96, 0, 1, null, 1), -- the plan is gone
  (13, 1, 1, 'succeeded', true, null, false, null, null, null, 0, 1, null, 1), -- connection_runs_chunk
  (14, 1, 1, 'succeeded', true, null, false, null, null, 1, null, null, null, 1), -- connection_runs_chunk
  (15, 1, 1, 'succeeded', true, null, false, null, null, 1, 3, 2, null, 1), -- connection_runs_chunk
  (16, 1, 1, 'succeeded', true, null, false, null, null, null, null, null, 16, 1), -- connection_runs_rerun
  (17, 99, 1, 'succeeded', true, null, false, null, null, null, null, null, 95, 98) -- account, run and user are gone
) r(id, account, connection, status, finished, skip, stop, starts, ends, plan, chunk, chunks, rerun, by);
insert into stream_runs (id, account_id, connection_id, connection_run_id, stream_id, stream_name, status, sync_mode, destination_sync_mode, fence, updated_at, heartbeat_at, finished_at, rows_read, rows_loaded, log_lag_bytes, estimated_rows)
select pg_temp.u(s.id), pg_temp.u(s.account), pg_temp.u(s.connection), pg_temp.u(s.run), pg_temp.u(s.stream), 'orders', s.status, 'incremental', 'append',
  s.fence, pg_temp.d(2), case when s.alive then pg_temp.d(1) end, case when s.finished then pg_temp.d(2) end, 7, 7, s.lag, s.estimated
from (values
  (1, 1, 1, 1, 1, 'succeeded', 3, true, true, 12, 100),
  (2, 1, 1, 2, 1, 'running', 4, true, false, null, null),
  (3, 1, 1, 2, 2, 'running', 0, false, false, null, null), -- stream_runs_held
  (4, 1, 1, 4, 1, 'running', 5, true, false, null, null), -- stream_runs_of_live_run
  (5, 1, 1, 6, 1, 'failed', 6, true, false, null, null), -- stream_runs_finished
  (6, 1, 2, 7, 1, 'pending', 0, false, true, null, null), -- stream_runs_finished
  (7, 99, 94, 5, 1, 'stopped', 7, true, true, null, -3) -- account and connection are gone, stream_runs_counts
) s(id, account, connection, run, stream, status, fence, alive, finished, lag, estimated);
insert into network_log_segments (id, account_id, connection_run_id, stream_run_id, connector_type, object_key, entries, bytes) values
  (pg_temp.u(1), pg_temp.u(1), pg_temp.u(1), pg_temp.u(1), 'source', 'logs/1', 4, 100),
  (pg_temp.u(2), pg_temp.u(99), pg_temp.u(1), pg_temp.u(1), 'destination', 'logs/2', 4, 100);
insert into usage_ledger (id, account_id, connection_id, connection_run_id, stream_run_id, attempt, day, kind, stream_name, rows_free, rows_paid, credits_used, credits_free, bytes_loaded) values
  (pg_temp.u(1), pg_temp.u(1), pg_temp.u(1), pg_temp.u(1), pg_temp.u(1), 1, '2026-01-02', 'elt', 'orders', 0, 7, 7, 0, 70),
  (pg_temp.u(2), pg_temp.u(99), pg_temp.u(95), pg_temp.u(95), pg_temp.u(95), 1, '2026-01-02', 'elt', 'orders', 0, 7, 7, 0, 70);
insert into plan_limit_notices (account_id, "limit", period_start, threshold) values
  (pg_temp.u(1), 'max_users', '2026-01-01', 80), (pg_temp.u(99), 'max_users', '2026-01-01', 80);
insert into events (id, account_id, event, category, severity, actor, resource, summary) values
  (pg_temp.u(1), pg_temp.u(1), 'run_failed', 'run', 'warning', '{"type": "system"}', '{"type": "connection"}', 'Failed'),
  (pg_temp.u(2), pg_temp.u(99), 'run_failed', 'run', 'warning', '{"type": "system"}', '{"type": "connection"}', 'Failed');
insert into tasks (id, account_id, kind, status, account_connector_id, connection_id, error, created_by, updated_at, finished_at) values
  (pg_temp.u(1), pg_temp.u(1), 'discover_catalog', 'succeeded', pg_temp.u(1), null, null, pg_temp.u(1), pg_temp.d(2), pg_temp.d(2)),
  (pg_temp.u(2), pg_temp.u(1), 'discover_catalog', 'failed', pg_temp.u(1), pg_temp.u(95), null, pg_temp.u(98), pg_temp.d(2), null), -- tasks_finished, tasks_failed
  (pg_temp.u(3), pg_temp.u(99), 'export_metadata', 'running', pg_temp.u(1), null, '{"code": "c", "message": "m"}', null, pg_temp.d(2), pg_temp.d(2)), -- tasks_finished, tasks_failed
  (pg_temp.u(4), pg_temp.u(1), 'discover_catalog', 'queued', pg_temp.u(97), null, null, null, pg_temp.d(2), null);
insert into triggers (id, account_id, name, rule, condition, normalized_rule, actions, severity, group_by, case_settings, is_system, system_key, created_by) values
  (pg_temp.u(1), pg_temp.u(1), 'Failures', 'true', null, 'true', '[]', 'high', '{}', '{}', false, null, pg_temp.u(98)),
  (pg_temp.u(2), pg_temp.u(1), 'triggers_rule', 'true', '{"all": []}', 'true', '[]', 'high', '{}', '{}', false, null, null),
  (pg_temp.u(3), pg_temp.u(1), 'triggers_rule too', null, null, 'true', '[]', 'high', '{}', '{}', false, null, null),
  (pg_temp.u(4), pg_temp.u(1), 'triggers_system', 'true', null, 'true', '[]', 'high', '{}', '{}', true, null, null);
insert into cases (id, account_id, number, title, status, severity, trigger_id, dedup_key, "group", first_event_at, last_event_at, opened_at, acknowledged_at, resolved_at, resolved_by, resolution, updated_at) values
  (pg_temp.u(1), pg_temp.u(1), 1, 'kept', 'resolved', 'high', pg_temp.u(1), 'a', '{}', pg_temp.d(1), pg_temp.d(2), pg_temp.d(1), null, pg_temp.d(2), pg_temp.u(98), 'manual', pg_temp.d(3)),
  (pg_temp.u(2), pg_temp.u(1), 2, 'cases_resolved', 'resolved', 'high', pg_temp.u(1), 'b', '{}', pg_temp.d(1), pg_temp.d(2), pg_temp.d(1), null, null, null, null, pg_temp.d(3)),
  (pg_temp.u(3), pg_temp.u(1), 3, 'cases_resolved', 'open', 'high', pg_temp.u(1), 'c', '{}', pg_temp.d(1), pg_temp.d(2), pg_temp.d(1), null, pg_temp.d(2), pg_temp.u(1), 'auto', pg_temp.d(3)),
  (pg_temp.u(4), pg_temp.u(1), 4, 'cases_acknowledged, cases_events', 'acknowledged', 'high', pg_temp.u(1), 'd', '{}', pg_temp.d(2), pg_temp.d(1), pg_temp.d(1), null, null, null, null, pg_temp.d(3));
insert into case_timeline (id, case_id, type) values (pg_temp.u(1), pg_temp.u(1), 'opened');
insert into deliveries (id, account_id, event_id, trigger_id, case_id, action_index, type, reason, status, delivered_at, last_attempt_at) values
  (pg_temp.u(1), pg_temp.u(1), pg_temp.u(1), pg_temp.u(1), pg_temp.u(1), 0, 'send_email', 'opened', 'delivered', pg_temp.d(2), pg_temp.d(2)),
  (pg_temp.u(2), pg_temp.u(99), pg_temp.u(1), pg_temp.u(1), pg_temp.u(95), 1, 'call_webhook', 'fired', 'delivered', null, pg_temp.d(2)), -- deliveries_delivered
  (pg_temp.u(3), pg_temp.u(1), pg_temp.u(1), pg_temp.u(1), null, 2, 'call_webhook', 'fired', 'failed', pg_temp.d(2), null); -- deliveries_delivered
insert into trigger_groups (trigger_id, group_key, "group") values (pg_temp.u(1), 'a', '{}');
insert into trigger_matches (event_id, trigger_id, fired, case_id) values
  (pg_temp.u(1), pg_temp.u(1), true, pg_temp.u(1)), (pg_temp.u(1), pg_temp.u(2), true, pg_temp.u(95));
insert into chat_channel_slots (account_connector_id, channel_id, next_at) values
  (pg_temp.u(2), 'C1', pg_temp.d(1)), (pg_temp.u(97), 'C1', pg_temp.d(1));
insert into idempotency_keys (user_id, key, request_hash, status, sealed_body) values
  (pg_temp.u(1), 'kept', 'h', 200, 'sealed'), (pg_temp.u(1), 'running', 'h', null, null),
  (pg_temp.u(1), 'idempotency_keys_answer', 'h', 200, null), (pg_temp.u(98), 'user is gone', 'h', 200, 'sealed');
