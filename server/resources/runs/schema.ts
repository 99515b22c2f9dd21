import { z } from 'zod';
import { RUN_STATUSES, STREAM_RUN_STATUSES } from '../../../db/schema/index.ts';
import { count, instant, UserReference, whole } from '../../api/wire-types.ts';

const uuid = () => z.string().meta({ format: 'uuid' });
const date = () => z.string().meta({ format: 'date' });

export const RunError = z
  .object({
    code: z.string(),
    message: z.string(),
    origin: z.enum(['source', 'destination', 'replication', 'platform', 'unknown']),
    type: z.string().meta({
      description:
        'config_error, auth_error, rate_limited, schema_changed, transient_error, system_error, timeout, plan_limit or manual_stop',
    }),
    retryable: z.boolean(),
    stream_name: z.string().nullable(),
    internal_message: z.string().nullable().meta({ description: 'Only for administrators; null for other users.' }),
    occurred_at: instant(),
  })
  .meta({ id: 'RunError' });

export const RunWarning = z
  .object({ code: z.string(), message: z.string(), stream_name: z.string().nullable() })
  .meta({ id: 'RunWarning' });

export const ConnectionRunSchema = z
  .object({
    id: uuid(),
    connection_id: uuid(),
    account_id: uuid(),
    number: whole(),
    status: z.enum(RUN_STATUSES),
    run_type: z.enum(['plain', 'custom', 'full_refresh']),
    trigger_type: z.enum(['schedule', 'manual', 'api', 'rerun', 'custom_plan', 'automation']),
    triggered_by: UserReference.nullable(),
    parent_run_id: uuid().nullable(),
    rerun_of_run_id: uuid().nullable(),
    plan_id: uuid().nullable(),
    chunk_index: whole().nullable(),
    chunk_count: whole().nullable(),
    window_start: date().nullable(),
    window_end: date().nullable(),
    attempt: whole(),
    max_attempts: whole(),
    queued_at: instant(),
    started_at: instant().nullable(),
    finished_at: instant().nullable(),
    duration_ms: count().nullable(),
    stop_requested_at: instant().nullable(),
    stop_requested_by: UserReference.nullable(),
    rows_read: count(),
    rows_loaded: count(),
    rows_rejected: count(),
    bytes_read: count(),
    bytes_loaded: count(),
    streams_total: whole(),
    streams_succeeded: whole(),
    streams_failed: whole(),
    credits_used: count(),
    credits_free: count(),
    error: RunError.nullable(),
    warnings: z.array(RunWarning),
    has_network_logs: z.boolean(),
    custom_run_parameters: z.record(z.string(), z.unknown()).nullable(),
    created_at: instant(),
    updated_at: instant(),
  })
  .meta({ id: 'ConnectionRunSchema' });
export type ConnectionRunSchema = z.infer<typeof ConnectionRunSchema>;

export const StreamRunSchema = z
  .object({
    id: uuid(),
    connection_run_id: uuid(),
    connection_id: uuid(),
    stream_id: uuid(),
    stream_name: z.string(),
    namespace: z.string().nullable(),
    status: z.enum(STREAM_RUN_STATUSES),
    sync_mode: z.enum(['full_refresh', 'incremental']),
    destination_sync_mode: z.enum(['append', 'overwrite', 'append_dedup', 'update', 'soft_delete']),
    attempt: whole(),
    started_at: instant().nullable(),
    finished_at: instant().nullable(),
    duration_ms: count().nullable(),
    rows_read: count(),
    rows_loaded: count(),
    rows_updated: count(),
    rows_deleted: count(),
    rows_rejected: count(),
    bytes_read: count(),
    bytes_loaded: count(),
    estimated_rows: count().nullable(),
    progress_percent: z.number().nullable(),
    cursor_before: z.string().nullable(),
    cursor_after: z.string().nullable(),
    window_start: date().nullable(),
    window_end: date().nullable(),
    log_lag_bytes: count().nullable(),
    requests_count: count(),
    rate_limited_until: instant().nullable(),
    has_network_logs: z.object({ source: z.boolean(), destination: z.boolean() }),
    error: RunError.nullable(),
    warnings: z.array(RunWarning),
    destination_table: z.string().nullable(),
    created_at: instant(),
    updated_at: instant(),
  })
  .meta({ id: 'StreamRunSchema' });
export type StreamRunSchema = z.infer<typeof StreamRunSchema>;
