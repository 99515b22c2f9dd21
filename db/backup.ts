import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import postgres from 'postgres';
import { z } from 'zod';
import type { ObjectStore } from '../server/platform/object-store.ts';
import journal from './migrations/meta/_journal.json' with { type: 'json' };

const Stored = z.object({ bytes: z.number(), sha256: z.string() });

/** What a backup contains. The key that opens its secrets is never part of it. */
export const BackupManifest = z.object({
  format: z.literal(1),
  created_at: z.string(),
  /** Number of migrations of the database, and the last one. */
  migrations: z.number(),
  last_migration: z.string(),
  key_id: z.string().nullable(),
  tables: z.array(Stored.extend({ name: z.string(), columns: z.array(z.string()), rows: z.number() })),
  sequences: z.array(z.object({ name: z.string(), last_value: z.string().nullable() })),
  objects: z.array(Stored.extend({ key: z.string() })),
  /** Objects that expired while the backup was written. */
  missing_objects: z.number(),
});
export type BackupManifest = z.infer<typeof BackupManifest>;

/** The operator can act on it: the message is one line for the terminal. */
export class BackupError extends Error {
  override name = 'BackupError';
}

const MANIFEST = 'manifest.json';
const tableFile = (name: string) => `tables/${name}.copy.gz`;
export const objectFile = (key: string) => `objects/${key}`;

/**
 * Writes all tables as of one moment, and the objects that they name, to a new folder. The service goes on meanwhile. The
 * folder gets its name once it is complete: after an error nothing is left.
 * @throws BackupError
 */
export async function writeBackup(
  from: { url: string; objects: ObjectStore },
  folder: string,
): Promise<BackupManifest> {
  if (existsSync(folder)) throw new BackupError(`${folder} exists. Name a new folder for the backup`);
  const draft = `${folder}.partial-${process.pid}`;
  const client = postgres(from.url, { max: 1, onnotice: () => {}, max_lifetime: null });
  try {
    mkdirSync(join(draft, 'tables'), { recursive: true, mode: 0o700 });
    await client.unsafe('begin isolation level repeatable read read only');
    const saved = await saveDatabase(client, draft);
    await client.unsafe('commit');
    const objects = await saveObjects(from.objects, saved.keys, draft);
    const manifest: BackupManifest = { format: 1, created_at: new Date().toISOString(), ...saved.database, ...objects };
    await Bun.write(join(draft, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
    renameSync(draft, folder);
    return manifest;
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (error instanceof BackupError) throw error;
    throw new BackupError(`The backup was not written: ${(error as Error).message}`, { cause: error });
  } finally {
    // At once: after an error the server may still be sending rows that nothing reads.
    await client.end({ timeout: 0 });
  }
}

async function saveDatabase(tx: postgres.Sql, draft: string) {
  const [applied] = await tx`select count(*)::int as count from drizzle.__drizzle_migrations`;
  const count = Number(applied?.count);
  const last = journal.entries[count - 1];
  if (!last)
    throw new BackupError(
      `The database has ${count} migrations, this version knows ${journal.entries.length}. Use the version that runs the service`,
    );
  const tables: BackupManifest['tables'] = [];
  for (const { name, columns } of await listTables(tx)) {
    const rows = await tx`copy ${tx(name)} (${tx(columns)}) to stdout`.readable();
    const lines = countLines();
    const stored = await store([rows, lines, createGzip({ level: 1 })], join(draft, tableFile(name)));
    tables.push({ name, columns, rows: lines.count(), ...stored });
  }
  const sequences = await tx<BackupManifest['sequences']>`
    select sequencename::text as name, last_value::text from pg_sequences where schemaname = 'public' order by 1`;
  const [key] = await tx`select key_id from installation`;
  const keys = await tx<{ key: string }[]>`
    select object_key as key from network_log_segments union select avatar_key from users where avatar_key is not null
    union select result ->> 'object_key' from tasks where result ->> 'object_key' is not null order by 1`;
  return {
    keys: keys.map((row) => row.key),
    database: {
      migrations: count,
      last_migration: last.tag,
      key_id: (key?.key_id as string | null) ?? null,
      tables,
      sequences: [...sequences],
    },
  };
}

/** The tables of the service with their columns, each behind those that its foreign keys name. */
export async function listTables(sql: postgres.Sql) {
  const tables = await sql<{ name: string; columns: string[] }[]>`
    select c.relname::text as name, array_agg(a.attname::text order by a.attnum) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    group by 1 order by 1`;
  const needs = await sql<{ name: string; needed: string }[]>`
    select conrelid::regclass::text as name, confrelid::regclass::text as needed from pg_constraint
    where contype = 'f' and connamespace = 'public'::regnamespace and conrelid <> confrelid`;
  const ordered: (typeof tables)[number][] = [];
  const visit = (table: (typeof tables)[number]): void => {
    if (ordered.includes(table)) return;
    for (const { needed } of needs.filter(({ name }) => name === table.name)) {
      const first = tables.find(({ name }) => name === needed);
      if (first) visit(first);
    }
    ordered.push(table);
  };
  tables.forEach(visit);
  return ordered;
}

async function saveObjects(store_: ObjectStore, keys: string[], draft: string) {
  const objects: BackupManifest['objects'] = [];
  for (const key of keys) {
    const found = await store_.get(key);
    if (!found) continue;
    const path = join(draft, objectFile(key));
    mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 });
    objects.push({ key, ...(await store([Readable.fromWeb(found as never)], path)) });
  }
  return { objects, missing_objects: keys.length - objects.length };
}

/** COPY writes one line per row, whatever is in it. */
function countLines(): Transform & { count(): number } {
  let count = 0;
  const counting = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) count += 1;
      done(null, chunk);
    },
  });
  return Object.assign(counting, { count: () => count });
}

async function store(content: [Readable, ...Transform[]], path: string): Promise<z.infer<typeof Stored>> {
  const hash = createHash('sha256');
  let bytes = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  await pipeline([...content, meter, createWriteStream(path, { mode: 0o600 })]);
  return { bytes, sha256: hash.digest('hex') };
}

/**
 * Reads the manifest of a backup and checks every file against it.
 * @throws BackupError
 */
export async function verifyBackup(folder: string): Promise<BackupManifest> {
  const manifest = await readManifest(folder);
  const files = [
    ...manifest.tables.map((one) => ({ ...one, file: tableFile(one.name) })),
    ...manifest.objects.map((one) => ({ ...one, file: objectFile(one.key) })),
  ];
  for (const { file, sha256 } of files) {
    const path = join(folder, file);
    if (!existsSync(path)) throw new BackupError(`The backup is damaged: ${file} is missing. Use another backup`);
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
    if (hash.digest('hex') !== sha256)
      throw new BackupError(`The backup is damaged: ${file} is not as it was written. Use another backup`);
  }
  return manifest;
}

async function readManifest(folder: string): Promise<BackupManifest> {
  const file = Bun.file(join(folder, MANIFEST));
  if (!(await file.exists())) throw new BackupError(`${folder} is not a complete backup: it has no ${MANIFEST}`);
  const parsed = BackupManifest.safeParse(await file.json().catch(() => null));
  if (!parsed.success) throw new BackupError(`The backup is damaged: ${MANIFEST} cannot be read. Use another backup`);
  return parsed.data;
}

/** The rows of a table of a backup, as COPY reads them. */
export const readTable = (folder: string, name: string): Readable =>
  createReadStream(join(folder, tableFile(name))).pipe(createGunzip());
