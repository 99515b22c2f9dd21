import { sql } from 'drizzle-orm';
import { customType, integer, uuid } from 'drizzle-orm/pg-core';

/** An instant as in the API: RFC 3339, UTC, milliseconds. postgres.js returns text such as `2026-01-01 00:00:00.123+00`. */
const instantType = customType<{ data: string; driverData: string }>({
  dataType: () => 'timestamp(3) with time zone',
  fromDriver: (value) => new Date(value).toISOString(),
});

/** A timestamp column that is read and written as ISO 8601 text. */
export const instant = (name: string) => instantType(name);

/** The time of the insert, set by the database. */
export const createdAt = () => instantType('created_at').notNull().default(sqlNow());
export const updatedAt = () =>
  instantType('updated_at')
    .notNull()
    .default(sqlNow())
    .$onUpdateFn(() => new Date().toISOString());

/** Primary key: a version 7 UUID, so that new rows are added at one end of the index. */
export const id = () =>
  uuid('id')
    .primaryKey()
    .$defaultFn(() => Bun.randomUUIDv7());

/** Optimistic lock: incremented by each change of a user. */
export const revision = () => integer('revision').notNull().default(1);

function sqlNow() {
  return sql`now()`;
}

const bytesType = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => 'bytea' });

/** Bytes that the service packs and unpacks itself. */
export const bytes = (name: string) => bytesType(name);
