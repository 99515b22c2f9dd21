import { z } from 'zod';
import { databaseServer, databaseTimeouts } from '../database-settings.ts';

const server = databaseServer({ port: 5432, database: 'postgres' });
const timeouts = databaseTimeouts('The server ends a statement that takes longer, COPY included');

export const PostgresSourceConfig = z.object({
  ...server,
  schemas: z.array(z.string().min(1)).default([]).meta({
    label: 'Schemas',
    description: 'Empty: all but those of the system',
    validates_remotely: true,
  }),
  ...timeouts,
});
export type PostgresSourceConfig = z.infer<typeof PostgresSourceConfig>;

export const PostgresDestinationConfig = z.object({
  ...server,
  schema: z.string().min(1).default('public').meta({
    label: 'Schema',
    description: 'Where tables go when the connection names no schema; made when it is absent',
    validates_remotely: true,
  }),
  ...timeouts,
});
export type PostgresDestinationConfig = z.infer<typeof PostgresDestinationConfig>;

const ServerSettings = z.object({ ...server, ...timeouts });
export type ServerSettings = z.infer<typeof ServerSettings>;
