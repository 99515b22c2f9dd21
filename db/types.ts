import type { PgDatabase } from 'drizzle-orm/pg-core';
import type { PostgresJsQueryResultHKT } from 'drizzle-orm/postgres-js';
import type * as schema from './schema/index.ts';

/** What a service takes: a connection or a transaction, it need not know which. */
export type Db = PgDatabase<PostgresJsQueryResultHKT, typeof schema>;
