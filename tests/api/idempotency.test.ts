import { describe, expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import { accountConnectors, connectionRuns, idempotencyKeys, tasks } from '../../db/schema/index.ts';
import { createApp } from '../../server/http/app.ts';
import { claimKey, deleteOldIdempotencyKeys, keepAnswer } from '../../server/api/idempotency-keys.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf, uniqueName } from '../support/resources.ts';
import { until } from '../support/until.ts';

const service = await testDeps();
const { db } = service.deps;
const api = testApi(service);
const make = makerOf(api.call);
const app = createApp(service.deps);

type Sent = { key?: string; body?: unknown; text?: string; api_key?: string };

async function post(path: string, { key, body, text, api_key = service.api_key }: Sent = {}) {
  const content = text ?? (body === undefined ? undefined : JSON.stringify(body));
  const answer = await app.handle(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${api_key}`,
        ...(content !== undefined && { 'content-type': 'application/json' }),
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      body: content,
    }),
  );
  const replayed = answer.headers.get('idempotency-replayed');
  return { status: answer.status, body: JSON.parse(await answer.text()), replayed };
}

const source = () => ({ name: uniqueName('source'), connector_type: 'source', connector_name: 'sample' });
const named = async (name: string) =>
  (await db.select().from(accountConnectors).where(eq(accountConnectors.name, name))).length;
const newKey = () => Bun.randomUUIDv7();

describe('a POST with Idempotency-Key', () => {
  test('runs once: repeating the request returns the same status and body', async () => {
    const key = newKey();
    const body = source();
    const first = await post('/account_connectors', { key, body });
    const second = await post('/account_connectors', { key, body });
    expect(first).toMatchObject({ status: 201, replayed: null, body: { name: body.name } });
    expect(second).toEqual({ ...first, replayed: 'true' });
    expect(await named(body.name)).toBe(1);
  });

  test('runs once among twenty parallel requests, and all receive the same response', async () => {
    const key = newKey();
    const body = source();
    const answers = await Promise.all(Array.from({ length: 20 }, () => post('/account_connectors', { key, body })));
    expect(new Set(answers.map((answer) => JSON.stringify([answer.status, answer.body]))).size).toBe(1);
    expect(answers.filter((answer) => answer.replayed === null)).toHaveLength(1);
    expect(await named(body.name)).toBe(1);
  });

  test('starts one run for twenty parallel requests', async () => {
    const { id } = await make.connection();
    const key = newKey();
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(`/connections/${id}/run`, { key })));
    expect(new Set(answers.map((answer) => JSON.stringify([answer.status, answer.body]))).size).toBe(1);
    expect(answers[0]?.status).toBe(200);
    expect(await db.select().from(connectionRuns).where(eq(connectionRuns.connection_id, id))).toHaveLength(1);
  });

  test('responds 400 idempotency_key_reused to another body, query or path', async () => {
    const key = newKey();
    const body = source();
    await post('/account_connectors', { key, body });
    const reused = { status: 400, body: { code: 'idempotency_key_reused' } };
    expect(await post('/account_connectors', { key, body: source() })).toMatchObject(reused);
    expect(await post('/account_connectors?date_range=today', { key, body })).toMatchObject(reused);
    expect(await post('/connections', { key, body })).toMatchObject(reused);
  });

  test('does not share its key with other users', async () => {
    const key = newKey();
    const other = await api.keyWith(['sources.create']);
    const first = await post('/account_connectors', { key, body: source() });
    const second = await post('/account_connectors', { key, body: source(), api_key: other });
    expect([first.status, second.status]).toEqual([201, 201]);
  });

  test.each([
    ['empty', ''],
    ['too long', 'k'.repeat(256)],
    ['not ASCII', 'schlüssel'],
  ])('responds 422 when the key is %s', async (_, key) => {
    const answer = await post('/account_connectors', { key, body: source() });
    expect(answer).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['header', 'idempotency-key'], type: 'string_pattern_mismatch' }] },
    });
  });

  test('of 255 characters is one', async () => {
    const key = 'k'.repeat(255);
    expect((await post('/account_connectors', { key, body: source() })).status).toBe(201);
  });

  test('responds 401 without a valid API key, and stores no key', async () => {
    const key = newKey();
    expect((await post('/account_connectors', { key, body: source(), api_key: 'wrong' })).status).toBe(401);
    expect((await post('/account_connectors', { key, body: source() })).status).toBe(201);
  });

  test('repeats a 400 or 404 even after the cause is fixed', async () => {
    const body = source();
    const taken = await post('/account_connectors', { body });
    const key = newKey();
    const refused = await post('/account_connectors', { key, body });
    expect(refused).toMatchObject({ status: 400, body: { code: 'duplicate_name' } });
    await api.call('DELETE', `/account_connectors/${taken.body.id}`);
    expect(await post('/account_connectors', { key, body })).toEqual({ ...refused, replayed: 'true' });
    const missing = newKey();
    expect((await post(`/connections/${newKey()}/run`, { key: missing })).status).toBe(404);
  });

  test('keeps the key free after a 422 or 403, for the corrected request', async () => {
    const key = newKey();
    expect((await post('/account_connectors', { key, body: { name: 1 } })).status).toBe(422);
    expect((await post('/account_connectors', { key, text: '{' })).status).toBe(422);
    expect((await post('/account_connectors', { key, body: source() })).status).toBe(201);
    const unprivileged = await api.keyWith([]);
    expect((await post('/account_connectors', { key: newKey(), body: source(), api_key: unprivileged })).status).toBe(
      403,
    );
  });

  test('is remembered for 24 hours, then its key is deleted', async () => {
    const key = newKey();
    const young = newKey();
    await post('/account_connectors', { key, body: source() });
    await post('/account_connectors', { key: young, body: source() });
    const age = sql`now() - interval '24 hours 1 second'`;
    await db.update(idempotencyKeys).set({ created_at: age }).where(eq(idempotencyKeys.key, key));
    expect(await post('/account_connectors', { key, body: source() })).toMatchObject({ status: 201, replayed: null });
    await db.update(idempotencyKeys).set({ created_at: age }).where(eq(idempotencyKeys.key, key));
    await deleteOldIdempotencyKeys(service.deps);
    const left = (await db.select().from(idempotencyKeys)).map((row) => row.key);
    expect(left).toContain(young);
    expect(left).not.toContain(key);
  });

  test('runs again when the first request died with its process', async () => {
    const key = newKey();
    const body = source();
    await post('/account_connectors', { key, body });
    const [lost] = await db.select().from(accountConnectors).where(eq(accountConnectors.name, body.name));
    await db.delete(tasks).where(eq(tasks.account_connector_id, lost!.id));
    await db.delete(accountConnectors).where(eq(accountConnectors.id, lost!.id));
    const age = sql`now() - interval '61 seconds'`;
    await db
      .update(idempotencyKeys)
      .set({ status: null, sealed_body: null, created_at: age })
      .where(eq(idempotencyKeys.key, key));
    expect(await post('/account_connectors', { key, body })).toMatchObject({ status: 201, replayed: null });
  });

  test('stores no response over that of a later request after losing its claim', async () => {
    const request = { user_id: service.user_id, key: newKey(), request_hash: 'hash' };
    const { secrets } = service.deps;
    expect(await claimKey(db, secrets, request)).toEqual({ kind: 'claimed' });
    await db
      .update(idempotencyKeys)
      .set({ created_at: sql`now() - interval '61 seconds'` })
      .where(eq(idempotencyKeys.key, request.key));
    expect(await claimKey(db, secrets, request)).toEqual({ kind: 'claimed' });
    expect(await keepAnswer(db, secrets, { request, status: 201, body: 'second' })).toBe(true);
    expect(await keepAnswer(db, secrets, { request, status: 201, body: 'first' })).toBe(false);
    expect(await claimKey(db, secrets, request)).toEqual({ kind: 'answered', status: 201, body: 'second' });
  });

  test('waits for the first request, however long it takes', async () => {
    const key = newKey();
    const body = source();
    const first = await post('/account_connectors', { key, body });
    const [row] = await db.select().from(idempotencyKeys).where(eq(idempotencyKeys.key, key));
    await db.update(idempotencyKeys).set({ status: null, sealed_body: null }).where(eq(idempotencyKeys.key, key));
    let ended = false;
    const twin = post('/account_connectors', { key, body }).finally(() => (ended = true));
    // Meanwhile, other requests take as long as the twin would without waiting.
    for (let other = 0; other < 3; other++) await post('/account_connectors', { key: newKey(), body: source() });
    expect(ended).toBe(false);
    const { status, sealed_body } = row!;
    await db.update(idempotencyKeys).set({ status, sealed_body }).where(eq(idempotencyKeys.key, key));
    await until(() => ended);
    expect(await twin).toEqual({ ...first, replayed: 'true' });
  });

  test('stores no response in plain text: a secret shown once stays shown once', async () => {
    const key = newKey();
    const body = source();
    await post('/account_connectors', { key, body });
    const [row] = await db.select().from(idempotencyKeys).where(eq(idempotencyKeys.key, key));
    expect(row?.sealed_body).toStartWith('v1.');
    expect(JSON.stringify(row)).not.toContain(body.name);
  });
});
