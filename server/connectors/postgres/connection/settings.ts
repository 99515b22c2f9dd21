import { z } from 'zod';
import { databaseServer, databaseTimeouts } from '../../kits/sql/settings.ts';

const server = databaseServer({ port: 5432, database: 'postgres' });
const timeouts = databaseTimeouts('The server ends a statement that takes longer, COPY included');

export const PostgresSourceConfig = z.object({
  ...server,
  schemas: z.array(z.string().min(1)).default([]).meta({
    label: 'Schemas',
    description: 'Empty: all but those of the system',
    validates_remotely: true,
  }),
  replication: z
    .enum(['cursor', 'logical'])
    .default('cursor')
    .meta({
      label: 'Incremental reads',
      description: 'Logical replication needs wal_level = logical, a user who may replicate, and tables with a key',
      value_labels: {
        cursor: 'By a column that grows',
        logical: 'By the changes in the log, deletes included (CDC)',
      },
    }),
  slot_lag_warning_mb: z
    .int()
    .min(1)
    .max(10_000_000)
    .default(1024)
    .meta({
      label: 'Warn about a slot behind by MB',
      description: 'The server keeps the log that a replication slot has not read',
      group: 'advanced',
      visible_when: { parameter: 'replication', equals: ['logical'] },
    }),
  parallel_reads: z.int().min(1).max(16).default(2).meta({
    label: 'Connections that read one table',
    description:
      'So many read a large table side by side, out of one snapshot; smaller ones, filtered ones and views are read by one',
    group: 'advanced',
  }),
  ...timeouts,
});
export type PostgresSourceConfig = z.infer<typeof PostgresSourceConfig>;

export const PostgresDestinationConfig = z.object({
  ...server,
  schema: z.string().min(1).default('public').meta({
    label: 'Schema',
    description: 'Default schema of connections without one; created if it does not exist',
    validates_remotely: true,
  }),
  ...timeouts,
});
export type PostgresDestinationConfig = z.infer<typeof PostgresDestinationConfig>;

const ServerSettings = z.object({ ...server, ...timeouts });
export type ServerSettings = z.infer<typeof ServerSettings>;
