import { describe, expect, test } from 'bun:test';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';
import { rpc, rpcQuery } from '../support/rpc.ts';

const service = await testDeps();
const api = testApi(service);
const make = makerOf(api.call);
const other = await api.otherAccount();
const viewer = api.as(await api.keyWith([]));

describe('connections.previewSchedule', () => {
  const preview = (schedule: object) => rpcQuery(viewer, 'connections.previewSchedule', { schedule });

  test('describes a schedule in words, with its next five runs in its time zone', async () => {
    const { result } = await preview({ type: 'cron', cron_expression: '30 6 * * 1', timezone: 'Europe/Berlin' });
    expect(result.description).toContain('06:30');
    expect(result.next_runs).toHaveLength(5);
    const inBerlin = new Intl.DateTimeFormat('en-GB', {
      timeZone: 'Europe/Berlin',
      weekday: 'short',

      hour: '2-digit',
      minute: '2-digit',
    });
    for (const tick of result.next_runs) expect(inBerlin.format(new Date(tick))).toBe('Mon 06:30');
    expect((await preview({ type: 'manual' })).result.next_runs).toEqual([]);
  });

  test('400 for an invalid cron expression, 422 for fields of another type', async () => {
    expect(await preview({ type: 'cron', cron_expression: '99 * * * *' })).toMatchObject({
      status: 400,
      error: { code: 'invalid_cron', field: 'schedule.cron_expression' },
    });
    expect(await preview({ type: 'manual', interval_minutes: 5 })).toMatchObject({ status: 422 });
  });
});

describe('account_connectors.discover', () => {
  test('starts one discovery for repeated requests, and reports its progress', async () => {
    const { id } = await make.source();
    const discover = async (call = api.call) => rpc(call, 'account_connectors.discover', { account_connector_id: id });
    const first = await discover();
    expect(first.status).toBe(200);
    expect((await discover()).result).toBe(first.result);
    const { result } = await rpcQuery(viewer, 'account_connectors.discovery', { account_connector_id: id });
    expect(result).toMatchObject({
      catalog_status: 'pending',
      task: { id: first.result, status: 'queued', error: null },
    });
    expect(await discover(viewer)).toMatchObject({ status: 403 });
    expect(await discover(other.call)).toMatchObject({ status: 404 });
    expect(await rpcQuery(other.call, 'account_connectors.discovery', { account_connector_id: id })).toMatchObject({
      status: 404,
    });
  });

  test('400 for a destination', async () => {
    const { id } = await make.destination();
    expect(await rpc(api.call, 'account_connectors.discover', { account_connector_id: id })).toMatchObject({
      status: 400,
      error: { code: 'discovery_not_supported' },
    });
  });
});

test('automation.ruleLanguage: every kind of event with its variables, and a sample that a rule accepts', async () => {
  const { result } = await rpcQuery(viewer, 'automation.ruleLanguage');
  expect(result.functions).toContain('regex_matches');
  const failed = result.kinds.find(({ event }: { event: string }) => event === 'connection_failed');
  expect(failed.variables).toContain('retry_count');
  expect(result.variables.retry_count).toBe('int');
  const rule = 'event == "connection_failed" && retry_count >= 0';
  const { body } = await viewer('POST', '/automation/evaluate_automator_rule', { rule, event: failed.sample });
  expect(body).toMatchObject({ is_valid: true, result: true });
});
