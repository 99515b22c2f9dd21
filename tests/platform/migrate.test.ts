import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../db/index.ts';
import { migrateDatabase } from '../../db/migrate.ts';
import { createPlainDatabase } from '../support/database.ts';

test('several processes may migrate an empty database at once: each migration is applied once', async () => {
  const { url, drop } = await createPlainDatabase();
  await Promise.all([migrateDatabase(url), migrateDatabase(url), migrateDatabase(url)]);
  await migrateDatabase(url);
  const database = openDatabase(url, { max: 1 });
  const [applied] = await database.db.execute<{ all: number; different: number }>(
    sql`select count(*)::int as all, count(distinct hash)::int as different from drizzle.__drizzle_migrations`,
  );
  const [table] = await database.db.execute<{ name: string | null }>(
    sql`select to_regclass('connection_runs')::text as name`,
  );
  await database.close();
  await drop();
  expect(applied!.all).toBeGreaterThan(0);
  expect(applied!.all).toBe(applied!.different);
  expect(table!.name).toBe('connection_runs');
});

test('a database that a newer version has migrated is refused, and stays as it is', async () => {
  const { url, drop } = await createPlainDatabase();
  await migrateDatabase(url);
  const database = openDatabase(url, { max: 1 });
  const count = async () =>
    (await database.db.execute(sql`select count(*)::int as count from drizzle.__drizzle_migrations`))[0]?.count;
  const before = Number(await count());
  await database.db.execute(
    sql`insert into drizzle.__drizzle_migrations (hash, created_at) values ('newer', ${Date.now() + 86_400_000})`,
  );
  await expect(migrateDatabase(url)).rejects.toThrow('The database was migrated by a newer version');
  expect(await count()).toBe(before + 1);
  await database.close();
  await drop();
});

test('a database that does not answer is an error that ends', async () => {
  const { url, drop } = await createPlainDatabase();
  await drop();
  await expect(migrateDatabase(url)).rejects.toThrow('does not exist');
});
