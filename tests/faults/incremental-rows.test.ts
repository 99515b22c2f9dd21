import { afterAll, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import fc from 'fast-check';
import postgres from 'postgres';
import { streamRuns } from '../../db/schema/index.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { getStreamRuns, makePipeline, type Pipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { isThorough } from '../support/thorough.ts';

// A commit after every batch; batches of a dozen rows, since each row is some 20 KB.
const service = await testDeps({ role: 'worker', config: { RETRY_BACKOFF_SECONDS: 0, CHECKPOINT_KB: 1 } });
const from = await createPlainDatabase();
const to = await createPlainDatabase();
const source = postgres(from.url, { max: 1, onnotice: () => {} });
const target = postgres(to.url, { max: 1, onnotice: () => {} });
const worker = await startWorker(service.deps);
afterAll(async () => {
  await worker.stop();
  await Promise.all([source.end(), target.end()]);
  await Promise.all([from.drop(), to.drop()]);
});
// Rows come in index order, so that the server disconnects among them and not while it sorts.
await source.unsafe(`alter database "${new URL(from.url).pathname.slice(1)}" set enable_sort = off;
  create table crash (id int);
  create function passes(int, text) returns text language plpgsql stable as $$ begin
    if exists (select from crash where id = $1) then
      perform pg_sleep(0.1); -- the rows before have time to be committed
      perform pg_terminate_backend(pg_backend_pid());
      perform pg_sleep(5);
    end if;
    return $2; end $$`);

interface Step {
  /** The increase of the cursor in each new row; 0 repeats the highest value. */
  added: number[];
  /** Rows to change, as fractions of the table; their cursor becomes the highest. */
  changed: number[];
  /** The position among the added rows where the source disconnects, as a fraction; null: never. */
  crash: number | null;
}
const step = (changes: boolean): fc.Arbitrary<Step> =>
  fc.record({
    added: fc.array(
      fc.integer({ min: 0, max: 2 }).map((n) => (n === 2 ? 1 : 0)),
      { maxLength: 60, size: 'max' },
    ),
    changed: changes ? fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { maxLength: 4 }) : fc.constant([]),
    crash: fc.option(fc.noBias(fc.integer({ min: 0, max: 99 })).map((percent) => percent / 100)),
  });

let counter = 0;
interface Way {
  mode: 'append' | 'append_dedup';
  lane: 'bytes' | 'rows';
}

async function pipeline({ mode, lane }: Way): Promise<Pipeline & { table: string }> {
  const table = `t${++counter}`;
  await source.unsafe(`create table ${table}_rows (id int primary key, at int not null, payload text not null);
    create index on ${table}_rows (at, id);
    create view ${table} as select id, at, passes(id, payload) as payload from ${table}_rows`);
  const created = await makePipeline(service, {
    source: { name: 'postgres', parameters: postgresParameters(from.url) },
    destination: { name: 'postgres', parameters: postgresParameters(to.url) },
    only: [table],
    stream: { sync_mode: 'incremental', destination_sync_mode: mode, cursor_field: ['at'], primary_key: [['id']] },
    // Only the row lane can identify a bad row.
    connection: lane === 'rows' ? { rejected_rows_policy: 'keep', max_rejected_rows: 1 } : {},
  });
  return { ...created, table };
}

/** Applies a step's changes at the source; the cursor never decreases, as an incremental read requires. */
async function changeSource(table: string, { added, changed, crash }: Step): Promise<void> {
  const [{ n, at } = { n: 0, at: 0 }] = await source.unsafe(
    `select count(*)::int n, coalesce(max(at), 0) at from ${table}_rows`,
  );
  let cursor = at as number;
  // 40,000 characters that do not compress, so that the server sends them at full size.
  const payload = "(select string_agg(md5(random()::text), '') from generate_series(1, 600))";
  for (const [index, above] of added.entries()) {
    cursor += above;
    await source.unsafe(`insert into ${table}_rows values (${n + index}, ${cursor}, ${payload})`);
  }
  for (const share of changed) {
    const id = Math.floor(share * (n + added.length));
    await source.unsafe(`update ${table}_rows set at = ${cursor}, payload = ${payload} where id = ${id}`);
  }
  await source.unsafe('truncate crash');
  if (crash !== null) await source.unsafe(`insert into crash values (${n + Math.floor(crash * added.length)})`);
}

const content = async (sql: postgres.Sql, table: string) =>
  (await sql.unsafe(`select id, at, md5(payload) from ${table} order by 1, 2, 3`)).map((row) =>
    Object.values(row).join(' '),
  );

/** All rows share few cursor values, and the source disconnects between rows with the same value. */
const TIED: Step[] = [0.5, 0.8, null].map((crash) => ({
  added: Array.from({ length: 60 }, (_, index) => Number(index % 20 === 0)),
  changed: [],
  crash,
}));

const tried = { crashed: 0, checkpoints: 0 };
async function run(created: Pipeline): Promise<void> {
  const id = await created.start();
  const { status } = await runEnded(service, id);
  if (status !== 'succeeded') tried.crashed += 1;
  const [stream] = await getStreamRuns(service, id);
  const [row] = await service.deps.db.select().from(streamRuns).where(eq(streamRuns.id, stream!.id));
  if (status !== 'succeeded' && row!.rows_loaded > 0) tried.checkpoints += 1;
}

test.each([
  { mode: 'append', lane: 'bytes' },
  { mode: 'append_dedup', lane: 'bytes' },
  { mode: 'append', lane: 'rows' },
] as Way[])(
  '$mode, $lane: whatever comes in whatever batches, and wherever the source breaks off, each row is there once',
  async (way) => {
    const { mode } = way;
    Object.assign(tried, { crashed: 0, checkpoints: 0 });
    const steps = fc.array(step(mode === 'append_dedup'), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(steps, async (planned) => {
        const created = await pipeline(way);
        for (const one of planned) {
          await changeSource(created.table, one);
          await run(created);
        }
        await source.unsafe('truncate crash');
        await run(created);
        const [there, here] = [await content(source, `${created.table}_rows`), await content(target, created.table)];
        expect(here).toEqual(there);
      }),
      { numRuns: isThorough ? 40 : 2, endOnFailure: true, examples: [[TIED]] },
    );
    // Otherwise the test would prove nothing.
    expect(tried.crashed).toBeGreaterThan(0);
    expect(tried.checkpoints).toBeGreaterThan(0);
  },
  180_000,
);
