import { expect, test } from 'bun:test';
import type { DestinationSyncMode, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { duckDbTarget } from './duckdb-target.ts';
import { row } from './writing.ts';

const { open, sql } = duckDbTarget();

/** In all cases more than the memory that DuckDB begins with: it works on 2,048 rows at a time. */
interface Wide {
  rows: number;
  width: number;
}

async function write(mode: DestinationSyncMode, { rows, width }: Wide, more: Partial<WriteTarget> = {}): Promise<void> {
  const writer = await open({ mode, ...more });
  for (let id = 1; id <= rows; id += 1) {
    await writer.write({ rows: [row(id, `${id} `.padEnd(width, 'x'))], bytes: width });
  }
  await writer.finish(null);
}

async function expectRows({ rows, width }: Wide): Promise<void> {
  const text = `rpad(id || ' ', ${width}, 'x')`;
  const found = await sql(`select count(*), count(distinct id), max(id), bool_and(name = ${text}) from t`);
  expect(found).toEqual([[String(rows), String(rows), String(rows), 'true']]);
}

test('wide rows are written', async () => {
  const wide = { rows: 2_100, width: 100_000 };
  await write('append', wide);
  await expectRows(wide);
});

test('wide rows are merged into wide rows', async () => {
  const wide = { rows: 140, width: 1_000_000 };
  await write('append_dedup', wide);
  await write('append_dedup', wide, { fence: 2, stream_run_id: 'second' });
  await expectRows(wide);
});
