import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { connectionRuns } from '../../db/schema/index.ts';
import { createApp } from '../../server/http/app.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';

const service = await testDeps();
const { db } = service.deps;
const api = testApi(service);
const make = makerOf(api.call);
const app = createApp(service.deps);
const UNKNOWN = '01900000-0000-7000-8000-000000000000';

/** A change on the tRPC face. */
async function change(name: string, input: object, options: { key: string; api_key?: string; query?: string }) {
  const answer = await app.handle(
    new Request(`http://localhost/trpc/${name}${options.query ?? ''}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${options.api_key ?? service.api_key}`,
        'content-type': 'application/json',
        'idempotency-key': options.key,
      },
      body: JSON.stringify(input),
    }),
  );
  const replayed = answer.headers.get('idempotency-replayed');
  return { status: answer.status, body: await answer.json(), replayed };
}
const newKey = () => Bun.randomUUIDv7();
const runsOf = (id: string) => db.select().from(connectionRuns).where(eq(connectionRuns.connection_id, id));

describe('a mutation over tRPC with Idempotency-Key', () => {
  test('sent twenty times at once runs once, and all get the same response', async () => {
    const { id } = await make.connection();
    const key = newKey();
    const input = { connection_id: id };
    const answers = await Promise.all(Array.from({ length: 20 }, () => change('runs.run', input, { key })));
    expect(new Set(answers.map(({ status, body }) => JSON.stringify([status, body]))).size).toBe(1);
    expect(answers.filter(({ replayed }) => replayed === null)).toHaveLength(1);
    const [run, ...more] = await runsOf(id);
    expect(more).toEqual([]);
    expect(answers[0]).toMatchObject({ status: 200, body: { result: { data: run!.id } } });
  });

  test('repeats an error response: 404', async () => {
    const key = newKey();
    const first = await change('runs.run', { connection_id: UNKNOWN }, { key });
    expect(first).toMatchObject({ status: 404, replayed: null, body: { error: { data: { code: 'not_found' } } } });
    expect(await change('runs.run', { connection_id: UNKNOWN }, { key })).toEqual({ ...first, replayed: 'true' });
  });

  test('does not store errors of the request itself: 422, 403', async () => {
    const key = newKey();
    for (const _ of [1, 2]) {
      const wrong = await change('runs.run', { connection_id: UNKNOWN, all: true }, { key });
      expect(wrong).toMatchObject({ status: 422, replayed: null });
    }
    const viewer = { key, api_key: await api.keyWith([]) };
    for (const _ of [1, 2]) {
      const refused = await change('runs.run', { connection_id: UNKNOWN }, viewer);
      expect(refused).toMatchObject({ status: 403, replayed: null });
    }
  });

  test('400 idempotency_key_reused in the form of tRPC, for another input', async () => {
    const key = newKey();
    const { id } = await make.connection();
    await change('runs.run', { connection_id: id }, { key });
    const reused = await change('runs.run', { connection_id: UNKNOWN }, { key });
    expect(reused).toMatchObject({
      status: 400,
      body: { error: { code: expect.any(Number), data: { code: 'idempotency_key_reused', path: 'runs.run' } } },
    });
  });

  test('400 idempotency_key_on_batch, and changes nothing', async () => {
    const { id } = await make.connection();
    const input = { 0: { connection_id: id } };
    const refused = await change('runs.run', input, { key: newKey(), query: '?batch=1' });
    expect(refused).toMatchObject({ status: 400, body: { error: { data: { code: 'idempotency_key_on_batch' } } } });
    expect(await runsOf(id)).toEqual([]);
  });

  test('401 before anything else', async () => {
    const answer = await change('runs.run', {}, { key: newKey(), api_key: 'nobody-has-this-key-0123456789' });
    expect(answer).toMatchObject({ status: 401, body: { error: { data: { code: 'invalid_token' } } } });
  });
});
