import { describe, expect, test } from 'bun:test';
import { emit, SYSTEM_ACTOR } from '../../server/events/emit.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';

const server = await testDeps();
const api = testApi(server);
const PATH = '/automation/evaluate_automator_rule';
const evaluate = async (body: object) => (await api.call('POST', PATH, body)).body;

describe('POST /automation/evaluate_automator_rule', () => {
  test('200: evaluates a rule against the variables of an event', async () => {
    const rule = 'event == "connection_failed" && retry_count >= 3 && !str::regex_matches(error_message, "^timeout")';
    const event = { event: 'connection_failed', retry_count: 3, error_message: 'refused' };
    const answer = await api.call('POST', PATH, { rule, event });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      is_valid: true,
      result: true,
      result_type: 'bool',
      error: null,
      matched_kinds: ['connection_failed'],
      variables_used: ['event', 'retry_count', 'error_message'],
      functions_used: ['regex_matches'],
      unknown_variables: [],
      matched_event_ids: null,
      evaluated_count: 1,
      warnings: [],
    });
    expect(answer.body.duration_ms).toBeGreaterThanOrEqual(0);
    expect((await evaluate({ rule, event: { ...event, retry_count: 2 } })).result).toBe(false);
  });

  test('200: accepts a condition in place of a rule', async () => {
    const condition = { all: [{ variable: 'event', operator: 'eq', value: 'user_added' }] };
    const answer = await evaluate({ condition, event: { event: 'user_added' } });
    expect([answer.is_valid, answer.result, answer.normalized_rule]).toEqual([true, true, 'event == "user_added"']);
  });

  test('200: uses the sample of an event kind', async () => {
    const answer = await evaluate({
      rule: 'event == "plan_limit_warning" && percent >= 90',
      event_type: 'plan_limit_warning',
    });
    expect([answer.result, answer.evaluated_count]).toEqual([true, 1]);
  });

  test('200: without an event, only checks the rule', async () => {
    const answer = await evaluate({ rule: 'retry_count > 3' });
    expect([answer.is_valid, answer.result, answer.evaluated_count]).toEqual([true, null, 0]);
    expect(answer.warnings.length).toBe(1);
  });

  test.each([
    ['event ==', 'parse_error', { line: 1, column: 9, offset: 8 }],
    ['event == "x" &&\n  foo > 3', 'unknown_variable', { line: 2, column: 3, offset: 18 }],
    ['retry_count > "3"', 'type_error', { line: 1, column: 1, offset: 0 }],
    ['email.matches("a")', 'function_not_allowed', { line: 1, column: 7, offset: 6 }],
    ['retry_count + 1', 'result_not_boolean', { line: 1, column: 1, offset: 0 }],
    [`email == "${'x'.repeat(2000)}"`, 'limit_exceeded', { line: 1, column: 1, offset: 0 }],
    ['', 'parse_error', { line: 1, column: 1, offset: 0 }],
  ])('200: an invalid rule is reported in the response: %s', async (rule, code, position) => {
    const answer = await api.call('POST', PATH, { rule, event: { event: 'x' } });
    expect(answer.status).toBe(200);
    expect([answer.body.is_valid, answer.body.result, answer.body.error.code]).toEqual([false, null, code]);
    expect(answer.body.error.position).toEqual(position);
  });

  test('200: lists all unknown variables, and the type of a result that is not boolean', async () => {
    expect((await evaluate({ rule: 'foo == 1 && bar == 2' })).unknown_variables).toEqual(['foo', 'bar']);
    expect((await evaluate({ rule: 'retry_count + 1' })).result_type).toBe('int');
  });

  test('200: a failed evaluation reports its position and has no result', async () => {
    const answer = await evaluate({
      rule: 'event == "connection_succeeded" && rows_loaded_zscore < -3.0',
      event: { event: 'connection_succeeded' },
    });
    expect([answer.is_valid, answer.result, answer.error.code]).toEqual([true, null, 'evaluation_error']);
    expect(answer.error.position).toEqual({ line: 1, column: 36, offset: 35 });
  });

  test('200: a hostile pattern ends', async () => {
    const event = { event: 'x', email: `${'a'.repeat(5000)}!` };
    // Backtracking would need more steps than the process of a rule lives.
    const { is_valid, result, error } = await evaluate({ rule: 'regex_matches(email, "^(a+)+b$")', event });
    expect([is_valid, result, error]).toEqual([true, false, null]);
  });

  test('200: evaluates stored events, one by its id or the newest', async () => {
    const rule = 'event == "role_created" && role_name == "tested"';
    for (const role_name of ['tested', 'other', 'tested']) {
      await server.deps.db.transaction((tx) =>
        emit(tx, {
          account_id: server.account_id,
          event: 'role_created',
          actor: SYSTEM_ACTOR,
          resource: { type: 'role', id: 'x', name: role_name },
          summary: 'made',
          payload: { role_name },
        }),
      );
    }
    const { body: stored } = await api.call('GET', '/automation/events?event=role_created&limit=3');
    const ids = stored.map((event: { id: string }) => event.id);
    const many = await evaluate({ rule, event_type: 'role_created', limit: 200 });
    expect(many).toMatchObject({ result: true, evaluated_count: 3, matched_event_ids: [ids[0], ids[2]] });
    expect(await evaluate({ rule, limit: 1 })).toMatchObject({
      result: true,
      evaluated_count: 1,
      matched_event_ids: [ids[0]],
    });
    expect(await evaluate({ rule, event_id: ids[1] })).toMatchObject({
      result: false,
      evaluated_count: 1,
      matched_event_ids: [],
    });
    const { call } = await api.otherAccount();
    expect((await call('POST', PATH, { rule, event_id: ids[0] })).status).toBe(404);
    expect((await call('POST', PATH, { rule, limit: 200 })).body.evaluated_count).toBe(0);
  });

  test.each([['nobody'], [Bun.randomUUIDv7()]])('404: unknown event %s', async (event_id) => {
    const answer = await api.call('POST', PATH, { rule: 'true', event_id });
    expect([answer.status, answer.body.detail]).toEqual([404, 'Event not found']);
  });

  test.each([
    [{}, ['body', 'rule']],
    [{ rule: 'true', condition: { variable: 'event', operator: 'eq', value: 'x' } }, ['body', 'rule']],
    [{ rule: 'true', event: {}, event_type: 'user_added' }, ['body', 'event']],
    [{ rule: 'true', event: {}, limit: 3 }, ['body', 'limit']],
    [{ rule: 'true', limit: 201 }, ['body', 'limit']],
    [{ rule: 'true', event_type: 'user_exploded' }, ['body', 'event_type']],
    [{ rule: 3 }, ['body', 'rule']],
    [{ rule: 'true', extra: 1 }, ['body', 'extra']],
  ])('422: a body with an undocumented shape: %j', async (body, loc) => {
    const answer = await api.call('POST', PATH, body);
    expect(answer.status).toBe(422);
    expect(answer.body.detail[0].loc).toEqual(loc);
  });

  test('401 without a key, 200 for a user without any permission', async () => {
    expect((await api.anonymous('POST', PATH, { rule: 'true' })).status).toBe(401);
    expect((await api.as(await api.keyWith([]))('POST', PATH, { rule: 'true' })).status).toBe(200);
  });
});
