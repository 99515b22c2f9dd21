import { z } from 'zod';
import { accountConnectors, RUN_STATUSES } from '../../../db/schema/index.ts';
import {
  count,
  day,
  idInBody,
  instant,
  name,
  owner,
  readOnlyKeys,
  text,
  UserReference,
  whole,
} from '../../api/wire-types.ts';
import { isFolder, MAX_FOLDER_LENGTH, MAX_FOLDER_LEVELS, trimmedFolder } from '../../pipeline/folders.ts';
import { ConnectionSchedule, ConnectionScheduleRequest } from './schedule-schema.ts';
import { ConnectionStream, ConnectionStreamRequest } from './streams/schema.ts';

const uuid = () => z.string().meta({ format: 'uuid' });
const schemaChangePolicy = () => z.enum(['ignore', 'propagate_columns', 'propagate_fully', 'disable_connection']);

/** Handling of rows that the destination rejects: fail the stream, or store them in a separate table. */
const inexactValues = () =>
  z.enum(['refuse', 'allow']).meta({
    description:
      'Values that the destination cannot store exactly: `refuse` rejects their rows, `allow` writes the nearest value and warns with the number per field.',
  });
const consistency = () =>
  z.enum(['run', 'stream']).meta({
    description:
      '`run`: the streams of a run that overwrite their tables are read from one snapshot of the source and published in one transaction of the destination. `stream`: each on its own.',
  });
const rejectedRowsPolicy = () =>
  z.enum(['fail', 'keep']).meta({
    description:
      '`fail`: the first row that cannot be loaded fails its stream. `keep`: such rows go to a table `_rejected` with the reason. Default: `keep` for events of webhooks where the destination supports it, otherwise `fail`.',
  });

export const ConnectionStatus = z
  .enum(['active', 'paused', 'auto_disabled', 'locked'])
  .meta({ id: 'ConnectionStatus' });

/** Reference to the source or destination of a connection. */
export const AccountConnectorSummary = z
  .object({
    id: uuid(),
    name: z.string(),
    connector_type: z.enum(['source', 'destination']),
    connector_name: z.string(),
    display_name: z.string(),
    icon_url: z.string().nullable(),
    status: z.enum(accountConnectors.status.enumValues),
  })
  .meta({ id: 'AccountConnectorSummary' });

export const ConnectionSchema = z
  .object({
    id: uuid(),
    account_id: uuid(),
    name: z.string(),
    description: z.string().nullable(),
    kind: z.enum(['elt', 'reverse_etl']),
    source_id: uuid(),
    destination_id: uuid(),
    source: AccountConnectorSummary,
    destination: AccountConnectorSummary,
    status: ConnectionStatus,
    status_reason: z.string().nullable(),
    health: z.enum(['healthy', 'warning', 'failing', 'pending', 'running']),
    schedule: ConnectionSchedule,
    verification_schedule: ConnectionSchedule.nullable(),
    backfill_days: whole(),
    start_date: z.string().nullable().meta({ format: 'date' }),
    destination_schema: z.string().nullable(),
    table_prefix: z.string(),
    streams: z.array(ConnectionStream).meta({ description: 'Ordered by namespace and name.' }),
    schema_change_policy: schemaChangePolicy(),
    schema_change_status: z.enum(['no_change', 'non_breaking', 'breaking']),
    catalog_refreshed_at: instant().nullable(),
    consistency: consistency(),
    consistency_in_effect: z.enum(['run', 'stream']).meta({
      description:
        '`stream` also where the source cannot share a snapshot, or the destination cannot publish tables together.',
    }),
    inexact_values: inexactValues(),
    rejected_rows_policy: rejectedRowsPolicy(),
    max_rejected_rows: whole(),
    max_parallel_streams: whole(),
    notify_on_failure: z.boolean(),
    tags: z.array(z.string()),
    folder: z.string().nullable().meta({ description: 'A path such as `Finance/Invoices`.' }),
    owner: z.string().nullable(),
    last_run: z
      .object({
        id: uuid(),
        status: z.enum(RUN_STATUSES),
        started_at: instant().nullable(),
        finished_at: instant().nullable(),
        rows_loaded: count(),
        error: z
          .object({ code: z.string(), message: z.string() })
          .nullable()
          .meta({ description: 'Why the run failed, or why it was skipped.' }),
      })
      .nullable(),
    active_run_id: uuid().nullable(),
    log_lag: z
      .object({
        bytes: count().meta({ description: 'Change log that the source keeps for this connection.' }),
        seconds: z.number().nullable().meta({
          description: 'Age of the newest change when it was read; 0: nothing was left to read. Null between runs.',
        }),
        measured_at: instant(),
      })
      .nullable()
      .meta({ description: 'How far change data capture is behind. Null without it.' }),
    next_run_at: instant().nullable(),
    last_succeeded_at: instant().nullable(),
    last_failed_at: instant().nullable(),
    consecutive_failures: whole(),
    created_by: UserReference.nullable(),
    updated_by: UserReference.nullable(),
    created_at: instant(),
    updated_at: instant(),
    revision: whole(),
  })
  .meta({ id: 'ConnectionSchema' });
export type ConnectionSchema = z.infer<typeof ConnectionSchema>;

/** A folder in a request. */
export const folder = () =>
  text(1, MAX_FOLDER_LENGTH)
    .overwrite(trimmedFolder)
    .refine(isFolder, `A folder has 1 to ${MAX_FOLDER_LEVELS} levels with a name each, such as Finance/Invoices`)
    .meta({ description: 'A path such as `Finance/Invoices`, of at most four levels.' });

const settings = {
  name: name(),
  description: text(0, 2000).nullable(),
  schedule: ConnectionScheduleRequest,
  verification_schedule: ConnectionScheduleRequest.nullable().meta({
    description: 'When all streams are compared with their tables. Null: only on request. Not `continuous`.',
  }),
  backfill_days: z.int().min(0).max(365),
  start_date: day().nullable(),
  destination_schema: text(1, 63).nullable(),
  table_prefix: text(0, 50),
  streams: z.array(ConnectionStreamRequest).max(10_000),
  schema_change_policy: schemaChangePolicy(),
  consistency: consistency(),
  inexact_values: inexactValues(),
  rejected_rows_policy: rejectedRowsPolicy(),
  max_rejected_rows: z.int().min(1).max(100_000),
  max_parallel_streams: z.int().min(1).max(50),
  notify_on_failure: z.boolean(),
  tags: z
    .array(name())
    .overwrite((tags) => [...new Set(tags)])
    .max(20),
  folder: folder().nullable(),
  owner: owner(),
  status: z.enum(['active', 'paused']),
};

export const CreateConnectionRequest = z
  .strictObject({
    ...z.object(settings).partial().shape,
    name: settings.name,
    source_id: idInBody(),
    destination_id: idInBody(),
    copy_field_mapping_from_connection_id: idInBody().nullable().optional(),
    run_immediately: z.boolean().default(false),
  })
  .meta({
    id: 'CreateConnectionRequest',
    examples: [
      {
        name: 'Shop to warehouse, hourly',
        source_id: '019a0000-0000-7000-8000-000000000001',
        destination_id: '019a0000-0000-7000-8000-000000000002',
        schedule: { type: 'interval', interval_minutes: 60 },
        tags: ['sales'],
      },
      {
        name: 'Orders alone',
        source_id: '019a0000-0000-7000-8000-000000000001',
        destination_id: '019a0000-0000-7000-8000-000000000002',
        streams: [{ name: 'orders', sync_mode: 'incremental', destination_sync_mode: 'append' }],
      },
    ],
  });
export type CreateConnectionRequest = z.infer<typeof CreateConnectionRequest>;

const updates = {
  ...z.object(settings).partial().shape,
  status: ConnectionStatus.optional().meta({
    description: 'Set to `active` or `paused`. Of the others, only the current value is accepted.',
  }),
  source_id: idInBody().optional().meta({ description: 'Immutable: only the current value is accepted.' }),
  destination_id: idInBody().optional().meta({ description: 'Immutable: only the current value is accepted.' }),
  streams_mode: z.enum(['merge', 'replace']).optional().meta({
    description: '`merge` (default) changes the named streams only, `replace` deselects the ones not named.',
  }),
  stop_active_run: z.boolean().optional().meta({ description: 'With status=paused, also stops the active run.' }),
  revision: z.int().optional().meta({ description: 'The update is rejected if the current revision differs.' }),
  reset_cursor: z
    .array(z.strictObject({ stream_id: idInBody(), value: text(1, 1000).nullable() }))
    .min(1)
    .max(10_000)
    .optional()
    .meta({ description: 'Sets cursors. With null, the next run starts from the beginning.' }),
};

export const UpdateConnectionRequest = z
  .strictObject({ ...updates, ...readOnlyKeys(ConnectionSchema, updates) })
  .refine((body) => Object.values(body).some((value) => value !== undefined), 'At least one field is required')
  .refine((body) => !body.stop_active_run || body.status === 'paused', {
    path: ['stop_active_run'],
    error: 'Only with status=paused',
  })
  .meta({
    id: 'UpdateConnectionRequest',
    examples: [
      { status: 'paused' },
      {
        schedule: { type: 'cron', cron_expression: '0 6 * * 1-5', timezone: 'Europe/Berlin' },
        tags: ['sales', 'daily'],
      },
    ],
  });
export type UpdateConnectionRequest = z.infer<typeof UpdateConnectionRequest>;
