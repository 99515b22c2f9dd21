import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { randomUUID } from 'node:crypto';
import type { AnyDestination, Cell, TargetColumn, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { FencedError } from '../../server/connectors/contract/errors.ts';
import { allConnectors } from '../../server/connectors/registry.ts';
import { limitHangs } from '../support/hangs.ts';
import { until } from '../support/until.ts';
import { FIXTURES } from './fixtures.ts';
import { contextOf, type Place } from './places.ts';

limitHangs();

const column = (name: string, type: TargetColumn['type']) => ({
  name,
  type,
  source_type: null,
  dialect: null,
  nullable: true,
});
const COLUMNS: TargetColumn[] = [
  column('id', 'integer'),
  column('text', 'string'),
  column('amount', 'number'),
  column('on_off', 'boolean'),
  column('day', 'date'),
  column('at', 'timestamp_tz'),
  column('bytes', 'binary'),
];
const texts: Cell[] = [
  'plain',
  '',
  null,
  'é 漢字 🦄 \u{10ffff}',
  ' "quoted", \\back\\slash\t\r\nline ',
  'NULL',
  '\\N',
  "'",
];

/** Rows that are easily corrupted: NULL and '', every kind of character, numbers beyond a double. */
const rowsFrom = (first: number): Cell[][] =>
  texts.map((text, at) => [
    String(first + at),
    text,
    at % 2 ? null : `1234567890123456789${at}.000000001`,
    at % 2 ? 'true' : 'false',
    '2024-02-29',
    '2026-01-31 23:59:59.123456+00',
    at % 2 ? '\\x' : '\\x00ff5c',
  ]);
const batchOf = (rows: Cell[][]) => ({ rows, bytes: JSON.stringify(rows).length });
const sorted = (rows: Cell[][] | null) => rows?.toSorted((a, b) => Number(a[0]) - Number(b[0])) ?? null;

function targetOf(table: string, more: Partial<WriteTarget> = {}): WriteTarget {
  const base = { schema: null, table, columns: COLUMNS, primary_key: [], cursor_column: null, mode: 'append' as const };
  const runs = { connection_run_id: randomUUID(), stream_run_id: randomUUID(), fence: 1, state_version: 0 };
  return { ...base, connection_id: `connection-of-${table}`, stream_id: `stream-of-${table}`, ...runs, ...more };
}

const destinations = allConnectors().filter(
  (connector): connector is AnyDestination =>
    connector.type === 'destination' && connector.supported_destination_sync_modes.length > 0,
);
for (const connector of destinations) {
  for (const [variant, make] of Object.entries(FIXTURES[`destination ${connector.name}`] ?? {})) {
    const none = (() => {}) as unknown as typeof test;
    const whereItOverwrites = connector.supported_destination_sync_modes.includes('overwrite') ? test : none;
    const whereItKeepsState = connector.capabilities?.at_least_once ? none : test;
    describe(`destination ${connector.name}, ${variant}`, () => {
      let place: Place;
      beforeAll(async () => {
        place = await make();
      });
      afterAll(() => place?.close());

      const open = (target: WriteTarget) => connector.open(contextOf(connector, place), target);
      const table = async (name: string) => sorted((await place.readTable?.(name, COLUMNS)) ?? null);
      whereItKeepsState('the names of its own tables are refused', async () => {
        for (const name of ['_pipeline_state', '_Rejected', 'orders__new_0123abcd']) {
          expect(await open(targetOf(name)).catch((error) => error)).toMatchObject({ code: 'reserved_name' });
        }
      });

      const load = async (target: WriteTarget, rows: Cell[][]) => {
        const writer = await open(target);
        await writer.write(batchOf(rows));
        return writer.finish({ cursor: String(rows.length) });
      };

      test('every value is read back unchanged, and NULL differs from the empty string', async () => {
        const counts = await load(targetOf('values'), rowsFrom(1));
        expect(counts.rows_loaded).toBe(texts.length);
        expect(await table('values')).toEqual(rowsFrom(1));
      });

      test('an append adds to the existing rows', async () => {
        await load(targetOf('appended', { fence: 1 }), rowsFrom(1));
        await load(targetOf('appended', { fence: 2, state_version: 1 }), rowsFrom(101));
        expect(await table('appended')).toEqual([...rowsFrom(1), ...rowsFrom(101)]);
      });

      test('each checkpoint of an append is visible at once, with running totals', async () => {
        const writer = await open(targetOf('checkpoints'));
        await writer.write(batchOf(rowsFrom(1)));
        expect((await writer.checkpoint({ cursor: 'a' })).rows_loaded).toBe(texts.length);
        expect(await table('checkpoints')).toEqual(rowsFrom(1));
        await writer.write(batchOf(rowsFrom(101)));
        expect((await writer.finish({ cursor: 'b' })).rows_loaded).toBe(2 * texts.length);
        expect(await table('checkpoints')).toEqual([...rowsFrom(1), ...rowsFrom(101)]);
      });

      whereItOverwrites('an overwrite shows the old rows until its end and then only the new ones', async () => {
        const mode = 'overwrite' as const;
        await load(targetOf('replaced', { mode, fence: 1 }), rowsFrom(1));
        const writer = await open(targetOf('replaced', { mode, fence: 2, state_version: 1 }));
        await writer.write(batchOf(rowsFrom(101)));
        await writer.checkpoint({ cursor: 'a' });
        await writer.write(batchOf(rowsFrom(201)));
        expect(await table('replaced')).toEqual(rowsFrom(1));
        await writer.finish(null);
        expect(await table('replaced')).toEqual([...rowsFrom(101), ...rowsFrom(201)]);
      });

      whereItOverwrites('an overwrite without rows leaves an empty table', async () => {
        const mode = 'overwrite' as const;
        await load(targetOf('emptied', { mode, fence: 1 }), rowsFrom(1));
        const writer = await open(targetOf('emptied', { mode, fence: 2, state_version: 1 }));
        expect((await writer.finish(null)).rows_loaded).toBe(0);
        expect(await table('emptied')).toEqual([]);
      });

      for (const mode of ['append', 'overwrite'] as const) {
        whereItKeepsState(`an aborted ${mode} leaves what was committed, and nothing open`, async () => {
          const name = `aborted_${mode}`;
          await load(targetOf(name, { fence: 1 }), rowsFrom(1));
          const writer = await open(targetOf(name, { mode, fence: 2, state_version: 1 }));
          await writer.write(batchOf(rowsFrom(101)));
          await writer.abort();
          expect(await table(name)).toEqual(rowsFrom(1));
          await until(async () => (await place.leftOpen()) === 0);
        });
      }

      whereItKeepsState('an attempt that was overtaken is refused, and what it wrote is gone', async () => {
        const stream_run_id = randomUUID();
        const slow = await open(targetOf('fenced', { stream_run_id, fence: 1 }));
        await slow.write(batchOf(rowsFrom(1)));
        const fast = await open(targetOf('fenced', { stream_run_id, fence: 2 }));
        await expect(slow.checkpoint({ cursor: 'slow' })).rejects.toBeInstanceOf(FencedError);
        await slow.abort();
        await fast.write(batchOf(rowsFrom(101)));
        await fast.finish({ cursor: 'fast' });
        await expect(open(targetOf('fenced', { stream_run_id, fence: 1 }))).rejects.toBeInstanceOf(FencedError);
        expect(await table('fenced')).toEqual(rowsFrom(101));
        await until(async () => (await place.leftOpen()) === 0);
      });

      whereItKeepsState('the next attempt is told what was committed', async () => {
        const stream_run_id = randomUUID();
        const first = await open(targetOf('resumed', { stream_run_id, fence: 1 }));
        expect(first.committed?.state ?? null).toBeNull();
        await first.write(batchOf(rowsFrom(1)));
        await first.checkpoint({ cursor: 'half', more: { nested: [1] } });
        await first.write(batchOf(rowsFrom(1)));
        await first.abort();

        const second = await open(targetOf('resumed', { stream_run_id, fence: 2 }));
        expect(second.committed).toMatchObject({
          state: { cursor: 'half', more: { nested: [1] } },
          same_stream_run: true,
          finished: false,
          counts: { rows_loaded: texts.length },
        });
        await second.write(batchOf(rowsFrom(101)));
        expect((await second.finish({ cursor: 'whole' })).rows_loaded).toBe(2 * texts.length);
        expect(await table('resumed')).toEqual([...rowsFrom(1), ...rowsFrom(101)]);

        const third = await open(targetOf('resumed', { stream_run_id, fence: 3 }));
        expect(third.committed).toMatchObject({ state: { cursor: 'whole' }, same_stream_run: true, finished: true });
        await third.abort();
        const other = await open(targetOf('resumed', { fence: 4 }));
        expect(other.committed).toMatchObject({ state: { cursor: 'whole' }, same_stream_run: false, finished: false });
        expect(other.committed?.counts.rows_loaded).toBe(0);
        await other.abort();
      });
    });
  }
}
