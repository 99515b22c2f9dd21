import { describe, expect, test } from 'bun:test';
import {
  AuthenticationError,
  ConfigurationError,
  RateLimitedError,
  RetryableError,
} from '../../server/connectors/contract/errors.ts';
import { recordingFetch } from '../../server/connector-runtime/recording-fetch.ts';
import { slackDestination } from '../../server/connectors/slack/destination.ts';
import { rateLimited, refused, SLACK_TOKEN, slackChannel, slackServer } from '../support/slack-server.ts';
import { contextOf } from './places.ts';

const slack = slackServer();
slack.channels = Array.from({ length: 8 }, (_, at) => slackChannel(`C${at}`, `channel-${at}`));
slack.channels.push(
  slackChannel('P1', 'hidden', { is_private: true, is_member: false, is_archived: true, num_members: 0 }),
);

const settings = { bot_token: SLACK_TOKEN, api_url: slack.api_url };
const context = (more: { settings?: object; signal?: AbortSignal } = {}) =>
  contextOf(slackDestination, { filesRoot: '/nowhere' }, { settings, ...more }) as never;
const failure = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error,
  );
const message = { channel_id: 'C1', text: 'Hello', thread: null, delivery_id: 'd-1' };

describe('the check', () => {
  test('reports user and workspace', async () => {
    const { checks } = await slackDestination.check(context());
    expect(checks).toEqual([{ title: 'Sign-in', status: 'passed', message: 'pipelines in Test' }]);
  });

  test.each(['invalid_auth', 'token_revoked', 'account_inactive', 'missing_scope'])(
    'reports %s as an authentication error',
    async (code) => {
      slack.next('auth.test', refused(code));
      expect(await failure(slackDestination.check(context()))).toBeInstanceOf(AuthenticationError);
    },
  );

  test('never shows the token, even if the server is not Slack', async () => {
    slack.next('auth.test', () => new Response(`<html>token ${SLACK_TOKEN}</html>`, { status: 200 }));
    const error = (await failure(slackDestination.check(context()))) as Error;
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error.message).not.toContain(SLACK_TOKEN);
  });
});

describe('the list of channels', () => {
  test('is read page by page to its end, with every field', async () => {
    slack.calls.length = 0;
    const found = await slackDestination.channels!(context());
    expect(found.map(({ id }) => id).sort()).toEqual(slack.channels.map(({ id }) => id).sort());
    expect(found.find(({ id }) => id === 'P1')).toEqual({
      id: 'P1',
      name: 'hidden',
      is_private: true,
      is_member: false,
      is_archived: true,
      member_count: 0,
    });
    expect(slack.calls).toEqual(['conversations.list', 'conversations.list', 'conversations.list']);
  });

  test('waits for Retry-After once after a 429', async () => {
    slack.next('conversations.list', rateLimited(1));
    const begun = performance.now();
    expect(await slackDestination.channels!(context())).toHaveLength(slack.channels.length);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(1000);
  });

  test('fails at the second 429 with the time to retry at', async () => {
    slack.next('conversations.list', rateLimited(1), rateLimited(30));
    const error = await failure(slackDestination.channels!(context()));
    expect(error).toBeInstanceOf(RateLimitedError);
    expect((error as RateLimitedError).until.toISOString()).toBe('2026-11-21T10:00:30.000Z');
  });

  test('does not wait for a long Retry-After', async () => {
    slack.next('conversations.list', rateLimited(3600));
    expect(await failure(slackDestination.channels!(context()))).toBeInstanceOf(RateLimitedError);
  });

  test('ends at once when aborted', async () => {
    const abort = new AbortController();
    slack.next('conversations.list', () => {
      abort.abort();
      return new Promise(() => {});
    });
    expect(await failure(slackDestination.channels!(context({ signal: abort.signal })))).toBeInstanceOf(Error);
  });
});

describe('a message', () => {
  test('starts a thread and replies in it, identified by its delivery id', async () => {
    const { thread } = await slackDestination.postMessage!(context(), message);
    await slackDestination.postMessage!(context(), { ...message, thread, delivery_id: 'd-2' });
    expect(slack.messages).toMatchObject([
      { channel: 'C1', text: 'Hello', thread_ts: null, ts: thread, delivery_id: 'd-1' },
      { channel: 'C1', thread_ts: thread, delivery_id: 'd-2' },
    ]);
  });

  test.each([
    ['channel_not_found', ConfigurationError, false],
    ['not_in_channel', ConfigurationError, false],
    ['is_archived', ConfigurationError, false],
    ['token_revoked', AuthenticationError, false],
    ['internal_error', RetryableError, true],
    ['service_unavailable', RetryableError, true],
  ] as const)('rejected with %s says what to do', async (code, kind, retryable) => {
    slack.next('chat.postMessage', refused(code));
    const error = await failure(slackDestination.postMessage!(context(), message));
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject({ code, retryable });
  });

  test.each([
    [500, RetryableError],
    [503, RetryableError],
    [403, AuthenticationError],
    [404, ConfigurationError],
  ] as const)('answered with status %d is classified by it', async (status, kind) => {
    slack.next('chat.postMessage', () => new Response('nothing', { status }));
    expect(await failure(slackDestination.postMessage!(context(), message))).toBeInstanceOf(kind);
  });
});

describe('the API address', () => {
  const recorder = { start: () => ({ done() {}, failed() {} }) };
  const through = (allow: string[]) =>
    ({
      ...(context() as object),
      fetch: recordingFetch(recorder, new AbortController().signal, { allow, http: true }),
    }) as never;

  test('may be internal only if the operator allows it', async () => {
    expect(await failure(slackDestination.check(through([])))).toMatchObject({
      code: 'address_not_allowed',
      retryable: false,
    });
    expect((await slackDestination.check(through([slack.allow]))).checks).toHaveLength(1);
  });

  test.each(['ftp://slack.com/api/', 'http://slack.com/api/', 'file:///etc/hostname'])('cannot be %s', (api_url) => {
    expect(() => context({ settings: { ...settings, api_url } })).toThrow('https');
  });
});
