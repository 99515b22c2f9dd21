import { describe, expect, test } from 'bun:test';
import { DataError, FencedError } from '../../server/connectors/contract/errors.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { until } from '../support/until.ts';
import { backends, batchOf, destinationConfig } from './postgres-support.ts';
import { targetTables } from './postgres-target-tables.ts';

const { sides, target, open, row, load, content, exists, errorOf } = targetTables();
describe('fencing', () => {
  test('an attempt with a lower fence can no longer commit', async () => {
    const old = await open();
    await old.write(batchOf([row(1, 'zombie')]));
    const young = await open({ fence: 2 });
    const error = await errorOf(old.finish({ cursor: '1' }));
    expect(error).toBeInstanceOf(FencedError);
    await old.abort();
    await young.write(batchOf([row(2, 'heir')]));
    await young.finish(null);
    expect(await content()).toEqual([[2, 'heir']]);
    expect(await errorOf(open())).toBeInstanceOf(FencedError);
  });

  test('a fenced overwrite leaves the table unchanged', async () => {
    await load({ mode: 'overwrite' }, batchOf([row(1, 'old')]));
    const zombie = await open({ mode: 'overwrite', fence: 2 });
    await zombie.write(batchOf([row(2, 'zombie')]));
    const heir = await open({ mode: 'overwrite', fence: 3 });
    expect(await errorOf(zombie.finish(null))).toBeInstanceOf(FencedError);
    await zombie.abort();
    await heir.abort();
    expect(await content()).toEqual([[1, 'old']]);
  });

  test('a finished stream run is reported as finished; a later run gets only a newer state', async () => {
    const writer = await open();
    await writer.finish({ cursor: '7' });
    const again = await open({ fence: 2 });
    expect(again.committed).toMatchObject({ finished: true, same_stream_run: true, state_version: 1 });
    await again.abort();
    const behind = await open({ fence: 3, stream_run_id: 'second', state_version: 0 });
    expect(behind.committed).toMatchObject({ state: { cursor: '7' }, same_stream_run: false, finished: false });
    await behind.abort();
    const level = await open({ fence: 4, stream_run_id: 'second', state_version: 1 });
    expect(level.committed).toBe(null);
    await level.abort();
  });

  test('a cursor changed in the control plane is not reverted', async () => {
    await (await open()).finish({ cursor: '7' });
    const moved = await open({ fence: 2, stream_run_id: 'second', state_version: 5 });
    await moved.finish(null);
    const next = await open({ fence: 3, stream_run_id: 'third', state_version: 0 });
    expect(next.committed).toMatchObject({ state: null, state_version: 5 });
    await next.abort();
  });
});

describe('no partial work remains', () => {
  test('abort discards everything uncommitted and may be called twice', async () => {
    for (const mode of ['append', 'overwrite', 'append_dedup'] as const) {
      const writer = await open({ mode });
      await writer.write(batchOf([row(1, 'a')]));
      await writer.abort();
      await writer.abort();
    }
    await until(async () => (await backends(sides.destination)) === 0);
    expect(await exists()).toBe(false);
    const left = await sides.destination
      .sql`select relname from pg_class where relname like ${'%\\_\\_new%'} or relname like ${'stage%'}`;
    expect([...left]).toEqual([]);
  });

  test('a connection killed in the middle leaves the last checkpoint', async () => {
    const { sql, server } = sides.destination;
    const writer = await open();
    await writer.write(batchOf([row(1, 'a')]));
    await writer.checkpoint({ cursor: '1' });
    await writer.write(batchOf([row(2, 'b')]));
    await sql`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = ${server.database} and application_name = 'data-pipelines'`;
    const error = await errorOf(writer.finish({ cursor: '2' }));
    expect(error).toMatchObject({ type: 'transient_error', retryable: true });
    await writer.abort();
    expect(await content()).toEqual([[1, 'a']]);
    expect((await open({ fence: 2 })).committed).toMatchObject({ state: { cursor: '1' }, counts: { rows_loaded: 1 } });
  });

  test('an invalid value is reported with its position, and its transaction is rolled back', async () => {
    await load({}, batchOf([row(1, 'a')]));
    const error = await errorOf(load({ fence: 2 }, batchOf([row(2, 'b'), row(3, 'c'), ['four', 'secret text', null]])));
    expect(error).toBeInstanceOf(DataError);
    expect(error!.code).toBe('invalid_value');
    expect(error!.message).toContain('row 3, column id');
    expect(error!.message).not.toContain('secret text');
    expect(await content()).toEqual([[1, 'a']]);
  });

  test("an aborted signal ends a waiting write with the signal's reason", async () => {
    const { ctx, abort } = destinationConfig(sides.destination);
    const writer = await postgresDestination.open(ctx, target());
    await writer.write(batchOf([row(1, 'a')]));
    const reason = new Error('stop');
    abort.abort(reason);
    expect(await errorOf(writer.write(batchOf([row(2, 'b')])))).toBe(reason as never);
    await writer.abort();
    await until(async () => (await backends(sides.destination)) === 0);
    expect(await exists()).toBe(false);
  });
});
