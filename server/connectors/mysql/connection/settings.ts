import { z } from 'zod';
import { databaseServer, databaseTimeouts } from '../../kits/sql/settings.ts';

const server = databaseServer({ port: 3306, database: 'shop', longest_database: 64 });
const timeouts = databaseTimeouts('The server ends a statement that takes longer (MySQL: only one that reads)');

export const ZERO_DATES = ['null', 'keep'] as const;

export const MysqlSourceConfig = z.object({
  ...server,
  zero_dates: z
    .enum(ZERO_DATES)
    .default('null')
    .meta({
      label: 'Dates like 0000-00-00',
      description: 'Dates without a year, a month or a day, which only MySQL and MariaDB can hold',
      value_labels: { null: 'NULL instead, with a warning', keep: 'As they are: for MySQL as the destination' },
      group: 'advanced',
    }),
  ...timeouts,
});
export type MysqlSourceConfig = z.infer<typeof MysqlSourceConfig>;

export const MysqlDestinationConfig = z.object({ ...server, ...timeouts });
export type MysqlDestinationConfig = z.infer<typeof MysqlDestinationConfig>;
export type ServerSettings = MysqlDestinationConfig;
