import { z } from 'zod';
import { databaseServer, databaseTimeouts } from '../../kits/sql/settings.ts';

const server = databaseServer({ port: 3306, database: 'shop', max_database_length: 64 });
const timeouts = databaseTimeouts('The server cancels statements that take longer (MySQL: only SELECT)');

export const ZERO_DATES = ['null', 'keep'] as const;

export const MysqlSourceConfig = z.object({
  ...server,
  zero_dates: z
    .enum(ZERO_DATES)
    .default('null')
    .meta({
      label: 'Zero dates',
      directs_secrets: false,
      description: 'Dates without a year, month or day, such as 0000-00-00, which only MySQL and MariaDB can store',
      value_labels: { null: 'Read as NULL, with a warning', keep: 'Keep them, for a MySQL destination' },
      group: 'advanced',
    }),
  replication: z
    .enum(['cursor', 'logical'])
    .default('cursor')
    .meta({
      label: 'Incremental reads',
      directs_secrets: false,
      description:
        'Change data capture needs a binary log (binlog_format = ROW, binlog_row_metadata = FULL, MySQL: gtid_mode = ON) and the privilege REPLICATION SLAVE',
      value_labels: {
        cursor: 'Cursor column',
        logical: 'Change data capture (CDC), including deletes',
      },
    }),
  binlog_lag_warning_mb: z
    .int()
    .min(1)
    .max(10_000_000)
    .default(1024)
    .meta({
      label: 'Log lag warning (MB)',
      directs_secrets: false,
      description: 'Binary log that has not been read yet. The server removes it after binlog_expire_logs_seconds',
      group: 'advanced',
      visible_when: { parameter: 'replication', equals: ['logical'] },
    }),
  ...timeouts,
});
export type MysqlSourceConfig = z.infer<typeof MysqlSourceConfig>;

export const MysqlDestinationConfig = z.object({ ...server, ...timeouts });
export type MysqlDestinationConfig = z.infer<typeof MysqlDestinationConfig>;
export type ServerSettings = MysqlDestinationConfig;
