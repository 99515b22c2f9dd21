import { sql } from 'drizzle-orm';
import { customType, integer, uuid } from 'drizzle-orm/pg-core';

/** An instant as the wire shows it: RFC 3339, UTC, milliseconds. postgres.js hands over text like `2026-01-01 00:00:00.123+00`. */
const instantType = customType<{ data: string; driverData: string }>({
  dataType: () => 'timestamp(3) with time zone',
  fromDriver: (value) => new Date(value).toISOString(),
});

/** A time stamp column, ISO text on both sides. */
export const instant = (name: string) => instantType(name);

/** A time stamp that the database sets. */
export const createdAt = () => instantType('created_at').notNull().default(sqlNow());
export const updatedAt = () =>
  instantType('updated_at')
    .notNull()
    .default(sqlNow())
    .$onUpdateFn(() => new Date().toISOString());

/** Primary key: a version 7 UUID, so that new rows land at one end of the index. */
export const id = () =>
  uuid('id')
    .primaryKey()
    .$defaultFn(() => Bun.randomUUIDv7());

/** Optimistic lock: grows with each change by a user. */
export const revision = () => integer('revision').notNull().default(1);

function sqlNow() {
  return sql`now()`;
}
