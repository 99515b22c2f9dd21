import { afterAll } from 'bun:test';

export const SLACK_TOKEN = 'xoxb-1234-test-token';

interface SlackChannel {
  id: string;
  name: string;
  is_private: boolean;
  is_member: boolean;
  is_archived: boolean;
  num_members: number;
}

export interface PostedMessage {
  channel: string;
  text: string;
  thread_ts: string | null;
  delivery_id: string | null;
  ts: string;
  at: number;
}

type SlackAnswer = () => Response | null | Promise<Response | null>;

export interface SlackServer {
  /** The connector's setting `api_url`. */
  api_url: string;
  allow: string;
  channels: SlackChannel[];
  messages: PostedMessage[];
  /** Called methods, in order. */
  calls: string[];
  /** Responses to the next calls of a method instead of the real ones; null stands for the real one. */
  next(method: string, ...answers: SlackAnswer[]): void;
  stop(): Promise<void>;
}

export const rateLimited = (seconds: number) => () =>
  new Response('{"ok":false,"error":"ratelimited"}', { status: 429, headers: { 'retry-after': String(seconds) } });
export const refused = (error: string) => () => Response.json({ ok: false, error });

/** The same, ended after the tests of the file. */
export function slackServer(): SlackServer {
  const slack = startSlackServer();
  afterAll(() => slack.stop());
  return slack;
}

/** Responds as Slack's documentation says, on a free port, with pages of three channels. */
export function startSlackServer(): SlackServer {
  const planned = new Map<string, SlackAnswer[]>();
  const slack: SlackServer = {
    api_url: '',
    allow: '',
    channels: [],
    messages: [],
    calls: [],
    next: (method, ...answers) => planned.set(method, answers),
    stop: () => server.stop(true),
  };
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const method = new URL(request.url).pathname.replace('/api/', '');
      const form = new URLSearchParams(await request.text());
      slack.calls.push(method);
      const instead = planned.get(method)?.shift();
      const answer = await instead?.();
      if (answer) return answer;
      if (request.headers.get('authorization') !== `Bearer ${SLACK_TOKEN}`) return refused('invalid_auth')();
      return METHODS[method]?.(slack, form) ?? refused('unknown_method')();
    },
  });
  slack.allow = `127.0.0.1:${server.port}`;
  slack.api_url = `http://${slack.allow}/api/`;
  return slack;
}

const PAGE = 3;

const METHODS: Record<string, (slack: SlackServer, form: URLSearchParams) => Response> = {
  'auth.test': () =>
    Response.json({ ok: true, url: 'https://test.slack.com/', team: 'Test', user: 'pipelines', team_id: 'T1' }),
  'conversations.list': ({ channels }, form) => {
    const cursor = form.get('cursor');
    const from = cursor ? Number(Buffer.from(cursor, 'base64').toString()) : 0;
    const end = from + Math.min(PAGE, Number(form.get('limit') ?? 100));
    const next_cursor = end < channels.length ? Buffer.from(String(end)).toString('base64') : '';
    return Response.json({ ok: true, channels: channels.slice(from, end), response_metadata: { next_cursor } });
  },
  'chat.postMessage': ({ channels, messages }, form) => {
    const channel = channels.find(({ id }) => id === form.get('channel'));
    if (!channel) return refused('channel_not_found')();
    if (channel.is_archived) return refused('is_archived')();
    if (!channel.is_member) return refused('not_in_channel')();
    const ts = `${1_700_000_000 + messages.length}.000100`;
    const metadata = JSON.parse(form.get('metadata') ?? '{}') as { event_payload?: { delivery_id?: string } };
    messages.push({
      channel: channel.id,
      text: form.get('text') ?? '',
      thread_ts: form.get('thread_ts'),
      delivery_id: metadata.event_payload?.delivery_id ?? null,
      ts,
      at: performance.now(),
    });
    return Response.json({ ok: true, channel: channel.id, ts, message: { text: form.get('text') } });
  },
};

export const slackChannel = (id: string, name: string, rest: Partial<SlackChannel> = {}): SlackChannel => ({
  id,
  name,
  is_private: false,
  is_member: true,
  is_archived: false,
  num_members: 3,
  ...rest,
});
