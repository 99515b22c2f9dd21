import { z } from 'zod';
import { databaseServer, databaseTimeouts } from '../../kits/sql/settings.ts';

const server = databaseServer({ port: 5432, database: 'postgres' });
const timeouts = databaseTimeouts('The server ends a statement that takes longer, COPY included');

export const PostgresSourceConfig = z.object({
  ...server,
  schemas: z.array(z.string().min(1)).default([]).meta({
    label: 'Schemas',
    directs_secrets: false,
    description: 'Leave empty for all schemas',
    validates_remotely: true,
  }),
  replication: z
    .enum(['cursor', 'logical'])
    .default('cursor')
    .meta({
      label: 'Incremental reads',
      directs_secrets: false,
      description:
        'Logical replication needs wal_level = logical, a user with the REPLICATION attribute, and tables with a key',
      value_labels: {
        cursor: 'Cursor column',
        logical: 'Change data capture (CDC), including deletes',
      },
    }),
  slot_lag_warning_mb: z
    .int()
    .min(1)
    .max(10_000_000)
    .default(1024)
    .meta({
      label: 'Slot lag warning (MB)',
      directs_secrets: false,
      description: 'The server keeps all log that a replication slot has not read yet',
      group: 'advanced',
      visible_when: { parameter: 'replication', equals: ['logical'] },
    }),
  slot_lag_policy: z
    .enum(['warn', 'pause_and_drop_slot'])
    .default('warn')
    .meta({
      label: 'Slot lag beyond the limit',
      directs_secrets: false,
      description: 'Without its slot, a connection has to read its tables again',
      value_labels: { warn: 'Warn only', pause_and_drop_slot: 'Pause the connection and drop its slot' },
      group: 'advanced',
      visible_when: { parameter: 'replication', equals: ['logical'] },
    }),
  slot_lag_limit_mb: z
    .int()
    .min(1)
    .max(10_000_000)
    .default(10_240)
    .meta({
      label: 'Slot lag limit (MB)',
      directs_secrets: false,
      description: 'The connection is paused and its slot dropped beyond this lag',
      group: 'advanced',
      visible_when: { parameter: 'slot_lag_policy', equals: ['pause_and_drop_slot'] },
    }),
  parallel_reads: z.int().min(1).max(16).default(2).meta({
    label: 'Parallel reads per table',
    directs_secrets: false,
    description:
      'Connections that read a large table in parallel from one snapshot. Small tables, filtered tables and views use one',
    group: 'advanced',
  }),
  row_level_security: z
    .enum(['refuse', 'apply'])
    .default('refuse')
    .meta({
      label: 'Row-level security',
      directs_secrets: false,
      description: 'Tables whose policies hide rows from this user',
      value_labels: { refuse: 'Fail the run', apply: 'Load the visible rows' },
      group: 'advanced',
    }),
  ...timeouts,
});
export type PostgresSourceConfig = z.infer<typeof PostgresSourceConfig>;

export const PostgresDestinationConfig = z.object({
  ...server,
  schema: z.string().min(1).default('public').meta({
    label: 'Schema',
    directs_secrets: false,
    description: 'Default schema of connections without one; created if it does not exist',
    validates_remotely: true,
  }),
  parallel_writes: z.int().min(1).max(16).default(2).meta({
    label: 'Parallel writes per table',
    directs_secrets: false,
    description:
      'Connections that load a table in parallel when it is new or overwritten. They join while its rows wait for the server. Unless it is 1, two parts of an incremental read are merged in parallel, and changes of a log are copied while those before them are merged',
    group: 'advanced',
  }),
  ...timeouts,
});
export type PostgresDestinationConfig = z.infer<typeof PostgresDestinationConfig>;

const ServerSettings = z.object({ ...server, ...timeouts });
/** `row_level_security`: of sources. */
export type ServerSettings = z.infer<typeof ServerSettings> & Partial<Pick<PostgresSourceConfig, 'row_level_security'>>;
