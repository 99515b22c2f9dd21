import type { PgDatabase } from 'drizzle-orm/pg-core';
import type { PostgresJsQueryResultHKT } from 'drizzle-orm/postgres-js';

/** A connection or a transaction: services accept either. */
export type Db = PgDatabase<PostgresJsQueryResultHKT>;
