import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type SQL, sql } from 'drizzle-orm';
import { getTableConfig } from 'drizzle-orm/pg-core';
import type { ObjectStore } from '../../server/platform/object-store.ts';
import { AUDITED } from '../audit-triggers.ts';
import { BackupError } from '../backup.ts';
import { schemaComments } from '../comments.ts';
import { auditEvents } from '../schema/index.ts';
import type { Db } from '../types.ts';
import { objectKeys, type OwnedTable, ownedTables } from './owned-tables.ts';

/** What an export contains, written as `account.json`. */
export interface AccountManifest {
  format: 1;
  exported_at: string;
  account_id: string;
  tables: ExportedTable[];
  /** Tables that are left out: they hold credentials only. */
  left_out: string[];
  objects: { key: string; file: string; bytes: number; sha256: string }[];
  /** Objects that expired before. */
  missing_objects: number;
}

interface ExportedTable {
  name: string;
  description: string | null;
  /** JSON Lines: an object per row. */
  file: string;
  rows: number;
  sha256: string;
  columns: { name: string; type: string; description: string | null }[];
  /** Columns with secrets. */
  left_out: string[];
}

/** Credentials of browsers, and responses that are stored to be repeated. */
const LEFT_OUT = ['sessions', 'idempotency_keys'];
const ROWS_AT_ONCE = 1000;
/** An encrypted value within JSON. */
const SEALED = /"v1\.[0-9a-f]{8}\.[^"]*"/g;

/**
 * Writes all rows of an account as of one moment, its objects and its files to a new folder, without secrets. The folder
 * gets its name once it is complete: after an error nothing is left.
 * @throws BackupError
 */
export async function exportAccount(
  from: { db: Db; objects: ObjectStore; files: string },
  account_id: string,
  folder: string,
): Promise<AccountManifest> {
  const draft = `${folder}.partial-${process.pid}`;
  try {
    mkdirSync(join(draft, 'tables'), { recursive: true, mode: 0o700 });
    const { tables, keys } = await exportRows(from.db, account_id, draft);
    const objects = await exportObjects(from.objects, keys, draft);
    await cp(from.files, join(draft, 'files'), { recursive: true, verbatimSymlinks: true }).catch(ignoreMissing);
    const manifest: AccountManifest = {
      format: 1,
      exported_at: new Date().toISOString(),
      account_id,
      tables,
      left_out: LEFT_OUT,
      objects,
      missing_objects: keys.length - objects.length,
    };
    await Bun.write(join(draft, 'account.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    renameSync(draft, folder);
    return manifest;
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    throw new BackupError(`The account was not exported: ${(error as Error).message}`, { cause: error });
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}

function exportRows(db: Db, account_id: string, draft: string): Promise<{ tables: ExportedTable[]; keys: string[] }> {
  const read = { isolationLevel: 'repeatable read', accessMode: 'read only' } as const;
  return db.transaction(async (tx) => {
    const tables: ExportedTable[] = [];
    const owned = [...ownedTables(), auditTable].filter(({ name }) => !LEFT_OUT.includes(name));
    for (const one of owned) tables.push(await exportTable(tx, one, { account_id, draft }));
    const keys = await tx.execute<{ key: string }>(objectKeys(account_id));
    return { tables, keys: keys.map(({ key }) => key) };
  }, read);
}

/** The audit log as a table of an account. */
export const auditTable: OwnedTable = {
  table: auditEvents,
  name: getTableConfig(auditEvents).name,
  columns: getTableConfig(auditEvents).columns.map((column) => ({ name: column.name, type: column.getSQLType() })),
  belongsTo: (account_id): SQL => sql`${auditEvents.account_id} = ${account_id}`,
};

async function exportTable(
  tx: Db,
  owned: OwnedTable,
  { account_id, draft }: { account_id: string; draft: string },
): Promise<ExportedTable> {
  const { name, columns } = owned;
  const left_out = AUDITED.find(({ table }) => table === owned.table)?.secrets ?? [];
  const file = `tables/${name}.jsonl`;
  const { rows, sha256 } = await writeRows(tx, owned, { account_id, path: join(draft, file), left_out });
  const comments = schemaComments().filter(({ table }) => table === name);
  const about = (column: string | null) => comments.find((one) => one.column === column)?.text ?? null;
  const described = columns.filter((column) => !left_out.includes(column.name));
  return {
    name,
    description: about(null),
    file,
    rows,
    sha256,
    columns: described.map((column) => ({ ...column, description: about(column.name) })),
    left_out,
  };
}

/** Writes the rows of an account in a table to a file of JSON lines, in a transaction. */
export async function writeRows(
  tx: Db,
  { table, belongsTo }: OwnedTable,
  into: { account_id: string; path: string; left_out?: string[] },
): Promise<{ rows: number; sha256: string }> {
  const hidden = sql.join([sql`'{}'::text[]`, ...(into.left_out ?? []).map((name) => sql`array[${name}]`)], sql` || `);
  await tx.execute(sql`declare exported no scroll cursor for
    select (to_jsonb(${table}) - (${hidden}))::text as line from ${table} where ${belongsTo(into.account_id)}`);
  const hash = new Bun.CryptoHasher('sha256');
  const writer = Bun.file(into.path).writer();
  let rows = 0;
  for (let fetched = ROWS_AT_ONCE; fetched === ROWS_AT_ONCE; rows += fetched) {
    const some = await tx.execute<{ line: string }>(sql.raw(`fetch ${ROWS_AT_ONCE} from exported`));
    const text = some.map(({ line }) => `${line.replaceAll(SEALED, '"secret"')}\n`).join('');
    hash.update(text);
    await writer.write(text);
    fetched = some.length;
  }
  await writer.end();
  await tx.execute(sql`close exported`);
  return { rows, sha256: hash.digest('hex') };
}

async function exportObjects(store: ObjectStore, keys: string[], draft: string): Promise<AccountManifest['objects']> {
  const objects: AccountManifest['objects'] = [];
  for (const key of keys) {
    const found = await store.get(key);
    if (!found) continue;
    const file = `objects/${key}`;
    mkdirSync(dirname(join(draft, file)), { recursive: true, mode: 0o700 });
    const bytes = await new Response(found).bytes();
    await Bun.write(join(draft, file), bytes);
    objects.push({
      key,
      file,
      bytes: bytes.length,
      sha256: new Bun.CryptoHasher('sha256').update(bytes).digest('hex'),
    });
  }
  return objects;
}
