import { afterEach, beforeEach } from 'bun:test';
import type { Batch, Cell, Writer, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { column } from './postgres-support.ts';

export const COLUMNS = [column('id', 'integer'), column('name', 'string'), column('at', 'timestamp_tz')];

export const row = (id: number | string | null, name: string | null, at: string | null = null): Cell[] => [
  id === null ? null : String(id),
  name,
  at,
];

/** Call at the top of a file or a group. Each test gets a unique table name, and its writers are closed after it. */
export function writingTo(openWriter: (target: WriteTarget, signal?: AbortSignal) => Promise<Writer>) {
  let table = '';
  let count = 0;
  const writers: Writer[] = [];
  beforeEach(() => {
    table = `table_${++count}`;
  });
  afterEach(async () => {
    for (const writer of writers.splice(0)) await writer.abort();
  });

  const target = (more: Partial<WriteTarget> = {}): WriteTarget => ({
    schema: null,
    table,
    columns: COLUMNS,
    primary_key: ['id'],
    cursor_column: null,
    mode: 'append',
    connection_id: 'connection',
    stream_id: table,
    connection_run_id: 'run',
    stream_run_id: 'first',
    fence: 1,
    state_version: 0,
    ...more,
  });
  const open = async (more: Partial<WriteTarget> = {}, signal?: AbortSignal) => {
    const writer = await openWriter(target(more), signal);
    writers.push(writer);
    return writer;
  };
  const load = async (more: Partial<WriteTarget>, ...batches: Batch[]) => {
    const writer = await open(more);
    try {
      for (const batch of batches) await writer.write(batch);
      return await writer.finish(null);
    } finally {
      await writer.abort();
    }
  };
  return { target, open, load, tableName: () => table };
}

/** The error of `work`, or null. */
export const errorOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error as Error & { code: string },
  );
