import { Database } from 'bun:sqlite';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type {
  Cell,
  ConnectorContext,
  Field,
  ReadRequest,
  StreamSchema,
} from '../../server/connectors/contract/connector.ts';
import type { SqliteSourceConfig } from '../../server/connectors/sqlite/settings.ts';
import { sqliteSource } from '../../server/connectors/sqlite/source.ts';
import { readBatches, requestOf } from './reading.ts';
import { contextOf } from './places.ts';

export interface SqlitePlace {
  filesRoot: string;
  write: Database;
  warnings: string[];
  context(signal?: AbortSignal, path?: string): ConnectorContext<SqliteSourceConfig>;
  stream(name: string): Promise<StreamSchema>;
  read(name: string, more?: Partial<ReadRequest>): Promise<Cell[][]>;
  close(): Promise<void>;
}

/** A folder with the database `data.db`, that `write` writes to. */
export async function sqlitePlace(): Promise<SqlitePlace> {
  const filesRoot = await mkdtemp(join(tmpdir(), 'data-pipelines-sqlite-'));
  const write = new Database(join(filesRoot, 'data.db'), { create: true, safeIntegers: true });
  const warnings: string[] = [];
  const context = (signal?: AbortSignal, path = 'data.db') => ({
    ...(contextOf(sqliteSource, { filesRoot }, { settings: { path }, signal }) as ConnectorContext<SqliteSourceConfig>),
    warn: (code: string) => void warnings.push(code),
  });
  const stream = async (name: string) => {
    const found = (await sqliteSource.discover(context())).find((one) => one.name === name);
    if (!found) throw new Error(`no stream ${name}`);
    return found;
  };
  const read = async (name: string, more: Partial<ReadRequest> = {}) => {
    const batches = await readBatches(sqliteSource, context(), requestOf(await stream(name), more));
    return batches.flatMap(({ rows }) => rows);
  };
  const close = async () => {
    write.close();
    await rm(filesRoot, { recursive: true, force: true });
  };
  return { filesRoot, write, warnings, context, stream, read, close };
}

export const typesOf = (stream: StreamSchema) =>
  Object.fromEntries(stream.fields.map(({ path, type }: Field) => [path[0], type]));
