import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import type { Cell, ReadRequest, StreamState } from '../../server/connectors/contract/connector.ts';
import { decodeCopyText, encodeCopyText } from '../../server/connectors/cells/copy-text.ts';
import { trackerOf } from '../../server/connectors/kits/sql/incremental-read.ts';
import { resumeCursor } from '../../server/connectors/kits/sql/cursors/safe-bound.ts';
import { trackLines } from '../../server/connectors/postgres/read/cursor-lines.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import {
  backends,
  readAll,
  requestOf,
  type Side,
  sourceConfig,
  streamNamed,
  twoDatabases,
} from './postgres-support.ts';
import { isThorough } from '../support/thorough.ts';
import { until } from '../support/until.ts';

// The machine may be busy with other tests.
setDefaultTimeout(60_000);

const sides = twoDatabases();
const run = (sql: string) => sides.source.sql.unsafe(sql);

async function incremental(table: string, cursor: string, state: StreamState | null = null): Promise<ReadRequest> {
  const stream = await streamNamed(sides.source, table);
  return requestOf(stream, { sync_mode: 'incremental', cursor_field: [cursor], state });
}

/** The chunks of the byte lane as rows, each with the state after it. */
async function copyAll(request: ReadRequest, side: Side = sides.source) {
  const from = sourceConfig(side);
  const stream = await postgresSource.copy!(from.ctx, request, 'pgcopy-text');
  const chunks: { rows: Cell[][]; state: StreamState | null; counted: number }[] = [];
  for await (const chunk of stream.chunks) {
    const rows = decodeCopyText(Buffer.from(chunk).toString('utf8'));
    chunks.push({ rows, state: stream.state!(), counted: stream.rows() });
  }
  return { chunks, rows: chunks.flatMap(({ rows }) => rows), state: stream.state!(), warnings: from.warnings };
}

const stored = (state: StreamState | null) => JSON.parse(JSON.stringify(state)) as StreamState | null;

describe('lines tracked by a cursor', () => {
  const field = (name: string, type: 'string' | 'integer') =>
    ({ path: [name], type, source_type: null, dialect: null }) as ReadRequest['columns'][0]['field'];
  const fields = [field('value', 'string'), field('at', 'integer')];
  const requestFrom = (state: StreamState | null) =>
    ({
      stream: { fields },
      columns: fields.map((one) => ({ field: one, masking: 'none' })),
      cursor_field: ['at'],
      primary_key: [],
      state,
    }) as unknown as ReadRequest;
  const cell = fc.constantFrom('a', 'b', '\\', '\t\n', null);
  const row = fc.tuple(fc.integer({ min: 0, max: 5 }), cell).map(([cursor, value]): Cell[] => [value, String(cursor)]);
  const table = fc.array(row, { maxLength: 40 });
  const cuts = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 5 });
  const bounds = fc.array(fc.option(fc.integer({ min: 0, max: 5 })), { minLength: 1, maxLength: 3 });

  test('produce the same rows and states as tracked rows, wherever chunks and reads are split', () => {
    fc.assert(
      fc.property(table, cuts, cuts, bounds, (rows, sizes, reads, limits) => {
        const sorted = rows.toSorted((a, b) => Number(a[1]) - Number(b[1]));
        const all: Cell[][] = [];
        let state: StreamState | null = null;
        let floor = -1;
        for (const [index, stop] of [...reads, 100].entries()) {
          const from = resumeCursor(state);
          const left = sorted.filter((one) => from === null || Number(one[1]) >= Number(from));
          const limit = limits[index % limits.length] ?? null;
          floor = Math.max(floor, Number(from ?? -1), limit ?? -1);
          const bound = { cursor: floor < 0 ? null : String(floor), open: [], pending: null };
          const byRows = trackerOf(requestFrom(state), bound);
          const byLines = trackLines(requestFrom(state), 1, bound);
          let at = 0;
          for (let chunk = 0; at < left.length && chunk < stop; chunk++) {
            const part = left.slice(at, at + sizes[chunk % sizes.length]!);
            const expected = byRows.next(part.map((one) => [...one, one[1]!]));
            const lines = byLines.next({ bytes: encodeCopyText(part, () => {}), rows: part.length });
            expect(decodeCopyText(lines.bytes.toString())).toEqual(expected.map((one) => one.slice(0, 2)));
            expect(lines.rows).toBe(expected.length);
            expect(byLines.state()).toEqual(byRows.state());
            all.push(...expected.map((one) => one.slice(0, 2)));
            state = stored(byRows.state());
            at += part.length;
          }
          if (at >= left.length) state = stored(byRows.end());
        }
        const counted = (found: Cell[][]) => found.map((one) => JSON.stringify(one)).toSorted();
        expect(counted(all)).toEqual(counted(rows));
      }),
      { numRuns: isThorough ? 2_000 : 100 },
    );
  });
});

describe('an incremental read as bytes', () => {
  beforeAll(async () => {
    await run(`
      create table ticks (id int primary key, note text, grp int, price numeric(9,2), at timestamptz);
      insert into ticks select g, repeat('ä\\\\	' || g, g % 50), g / 900, g * 1.25,
        timestamptz '2024-01-01 00:00:00.000001+00' + (g / 700) * interval '1 hour' from generate_series(1, 9000) g;
      update ticks set note = repeat('€', 700000) where id in (2500, 2501);
      update ticks set at = null where id > 8990;`);
  });

  test.each(['at', 'grp', 'price', 'id'])('by %s equals the row lane', async (cursor) => {
    const request = await incremental('ticks', cursor);
    const [bytes, rows] = [await copyAll(request), await readAll(sourceConfig(sides.source).ctx, request)];
    expect(bytes.rows.length).toBe(9000);
    expect(bytes.rows).toEqual(rows.rows);
    expect(bytes.state).toEqual(rows.state);
    expect(bytes.warnings).toEqual(cursor === 'at' ? ['null_cursor'] : []);
  });

  test('goes on from any chunk, in either lane, with the rest and no more', async () => {
    const request = await incremental('ticks', 'at');
    const all = await copyAll(request);
    const stops = all.chunks.map(({ state }, index) => ({ state, index })).filter(({ state }) => state !== null);
    expect(stops.length).toBeGreaterThan(8);
    for (const { state, index } of stops) {
      const given = all.chunks.slice(0, index + 1).flatMap(({ rows }) => rows);
      expect(all.chunks[index]!.counted).toBe(given.length);
      if (!isThorough && index % 8 > 1) continue;
      const rest = { ...request, state: stored(state) };
      const bytes = await copyAll(rest);
      const rows = index % 8 === 0 ? await readAll(sourceConfig(sides.source).ctx, rest) : bytes;
      for (const { rows: more } of [bytes, rows]) expect([...given, ...more]).toEqual(all.rows);
      if (bytes.rows.length > 0) expect(bytes.state).toEqual(all.state);
    }
  });

  test('of nothing has no rows and leaves the state alone; of no row with a cursor it is noted', async () => {
    const all = await copyAll(await incremental('ticks', 'at'));
    const again = await copyAll(await incremental('ticks', 'at', stored(all.state)));
    expect(again.rows).toEqual([]);
    expect(again.state).toEqual(all.state);
    expect(again.warnings).toEqual(['null_cursor']);
    await run('create table hollow as select g as id, null::date as at from generate_series(1, 3) g');
    const hollow = await copyAll(await incremental('hollow', 'at'));
    expect(hollow.rows.length).toBe(3);
    expect(hollow.state).toMatchObject({ cursor: null, nulls_read: true });
    expect((await copyAll(await incremental('hollow', 'at', stored(hollow.state)))).rows).toEqual([]);
  });

  test('filters and masks are part of it', async () => {
    const request = await incremental('ticks', 'id');
    const [id, note] = request.columns;
    const columns = [{ ...note!, masking: 'hash_sha256' as const }, id!];
    const filters = [{ field: 'grp', operator: 'eq' as const, value: 3 }];
    const chosen = { ...request, columns, filters };
    expect(postgresSource.byteFormats!(chosen)).toEqual(['pgcopy-text']);
    const [bytes, rows] = [await copyAll(chosen), await readAll(sourceConfig(sides.source).ctx, chosen)];
    expect(bytes.rows.length).toBe(900);
    expect(bytes.rows).toEqual(rows.rows);
    expect(bytes.state).toEqual(rows.state);
  });

  test('an error of the server is told as of the lane of rows, and leaves no connection', async () => {
    const request = await incremental('ticks', 'at');
    const gone = { ...request, stream: { ...request.stream, name: 'nowhere' } };
    const error = await copyAll(gone).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code: 'table_missing' });
    await until(async () => (await backends(sides.source)) === 0);
  });

  test('is offered where the cursor can be found in the line, and what is equal has one text', async () => {
    await run(
      'create table numbers (id int, exact numeric(9,2), any_scale numeric, float float8, name text, day date)',
    );
    const offered = async (cursor: string, more: Partial<ReadRequest> = {}) =>
      postgresSource.byteFormats!({ ...(await incremental('numbers', cursor)), ...more });
    for (const cursor of ['id', 'exact', 'day']) expect(await offered(cursor)).toEqual(['pgcopy-text']);
    // 1.0 and 1.00, 0 and -0, and texts that a collation considers equal.
    for (const cursor of ['any_scale', 'float', 'name']) expect(await offered(cursor)).toEqual([]);
    const { columns } = await incremental('numbers', 'id');
    expect(await offered('id', { columns: columns.slice(1) })).toEqual([]);
    expect(await offered('id', { columns: columns.map((one) => ({ ...one, masking: 'redact' as const })) })).toEqual(
      [],
    );
    expect(await offered('id', { reader_id: 'reader' })).toEqual([]);
  });
});
