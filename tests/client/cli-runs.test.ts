import { afterAll, describe, expect, test } from 'bun:test';
import postgres from 'postgres';
import { cases, triggers } from '../../db/schema/index.ts';
import { createApp } from '../../server/http/app.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { manifestOf, streamOf } from '../connectors/manifest-support.ts';
import { testApi } from '../support/api.ts';
import { commandLine } from '../support/cli.ts';
import { startHttpServer } from '../support/http-server.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

const service = await testDeps({ role: 'worker' });
const { call } = testApi(service);
const make = makerOf(call);
const app = createApp(service.deps).listen({ hostname: '127.0.0.1', port: 0 });
const worker = await startWorker(service.deps);
afterAll(async () => {
  await app.server?.stop(true);
  await worker.stop();
});
const cli = commandLine({ url: `http://127.0.0.1:${app.server!.port}`, key: service.api_key });
const SLOW = { rows: 100_000, batch_rows: 10, batch_delay_ms: 100 };

async function connection(source: object = {}, destination: object = {}) {
  const made = await make.connection({
    source_id: (await make.source(source)).id,
    destination_id: (await make.destination(destination)).id,
  });
  return made as { id: string; name: string };
}

describe('sources create', () => {
  test('prompts for parameters; the secret is not echoed', async () => {
    const session = cli.terminal(['sources', 'create', 'sample']);
    await session.sees('Name');
    session.type(' one\r');
    await session.sees('Rows');
    session.type('\u007f\u007f\u007fx\r');
    await session.sees('is not a number');
    session.type('\u007f77\r');
    for (const label of ['Streams', 'Rows per batch', 'Padding per row (bytes)', 'Has a primary key', 'Has a cursor']) {
      await session.sees(label);
      session.type('\r');
    }
    await session.sees('Token');
    session.type('a-very-secret-token\r');
    await session.sees('active');
    expect(await session.ended()).toBe(0);
    expect(session.screen()).not.toContain('very-secret');
    const [made] = (await call('GET', '/account_connectors?connector_type=source')).body;
    expect(made).toMatchObject({ name: 'Sample one', status: 'active' });
    expect(made.parameters).toMatchObject({ rows: 77, token: '**********' });
  }, 60_000);

  test('takes parameters from flags; --json prints the response', async () => {
    const { code, out } = await cli.run([
      'sources',
      'create',
      'sample',
      '--name',
      'flags',
      '--set',
      'rows=5',
      '--json',
    ]);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ name: 'flags', parameters: { rows: 5 } });
  });

  test('takes parameters from a file on standard input', async () => {
    const made = await cli.run(['destinations', 'create', 'sample', '--name', 'file', '--file', '-'], {
      input: 'folder: there',
    });
    expect(made).toMatchObject({ code: 0, out: expect.stringContaining('folder = there') });
  });

  test('lists the parameters if one is unknown: 2; a failing test: 1', async () => {
    const wrong = await cli.run(['sources', 'create', 'sample', '--name', 'wrong', '--set', 'rowz=5']);
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('rows, streams') });
    const broken = await cli.run(['sources', 'create', 'sample', '--name', 'broken', '--set', 'check=fails']);
    expect(broken.code).toBe(1);
  });
});

describe('destinations test', () => {
  test('tests the schema that is named: 0 or 1', async () => {
    const { url, drop } = await createPlainDatabase();
    const role = `loader_${crypto.randomUUID().slice(0, 8)}`;
    const admin = postgres(url, { max: 1, onnotice: () => {} });
    await admin.unsafe(`create role ${role} login password 'right'; create schema shop authorization ${role}`);
    const parameters = { ...postgresParameters(url), username: role, password: 'right' };
    const { name } = await make.connector('destination', 'postgres', parameters);
    const right = await cli.run(['destinations', 'test', name, '--schema', 'shop']);
    expect(right).toMatchObject({ code: 0, out: expect.stringContaining('✓ Schema shop') });
    const wrong = await cli.run(['destinations', 'test', name, '--schema', 'shops']);
    expect(wrong).toMatchObject({ code: 1, err: expect.stringContaining('cannot write to its schema shops') });
    expect(wrong.out).toContain(`TO "${role}";`);
    await admin.unsafe(`drop owned by ${role}; drop role ${role}`);
    await admin.end();
    await drop();
  });
});

test('sources show cuts a long definition, and names the way to all of it', async () => {
  const streams = Array.from({ length: 20 }, (_, n) => `  - { name: s${n}, request: { path: /s${n} } }`);
  const definition = ['base_url: https://api.example.com', 'streams:', ...streams].join('\n');
  const parameters = { definition };
  const about = { name: 'Long', connector_type: 'source', connector_name: 'http_api', test_connection: false };
  expect((await call('POST', '/account_connectors', { ...about, parameters })).status).toBe(201);
  const { out } = await cli.run(['sources', 'show', 'Long']);
  expect(out).toContain('… 17 more lines: -o yaml shows them');
  expect(out).not.toContain('/s19');
  expect((await cli.run(['sources', 'show', 'Long', '-o', 'yaml'])).out).toContain('/s19');
});

describe('sources draft', () => {
  test('prints parameters that a preview reads: 0; what is not an OpenAPI document: 1', async () => {
    const content = { 'application/json': { schema: { type: 'array', items: { properties: { id: {} } } } } };
    const openapi = {
      openapi: '3.1.0',
      servers: [{ url: 'https://{shop}.example.com' }],
      paths: { '/orders': { get: { responses: { 200: { content } } } }, '/me': { get: {} } },
    };
    const draft = (input: string) => cli.run(['sources', 'draft', '--openapi', '-'], { input });
    const { code, out, err } = await draft(JSON.stringify(openapi));
    expect([code, Bun.YAML.parse(out)]).toMatchObject([0, { config: { shop: '' } }]);
    expect(out).toContain('base_url: https://{{ config.shop }}.example.com');
    expect(err).toContain('No stream for /me: The document describes no JSON response');
    const refused = await draft('swagger: "1.2"');
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('Not an OpenAPI 3 or Swagger 2 document')]);
  }, 60_000);
});

describe('connectors', () => {
  const manifest = (names: string[]) => JSON.stringify(manifestOf(names.map((name) => streamOf(name))));

  test('adds a connector, shows what an update changes, updates and removes it: 0', async () => {
    const added = await cli.run(['connectors', 'add', '-', '--name', 'shop', '--json'], {
      input: manifest(['orders']),
    });
    expect([added.code, JSON.parse(added.out)]).toMatchObject([0, { name: 'custom.shop', streams: ['orders'] }]);
    expect((await cli.run(['connectors', '--type', 'source'])).out).toContain('custom.shop');
    expect((await cli.run(['connectors', 'custom.shop'])).out).toContain('Shop (source)');
    const update = (...more: string[]) =>
      cli.run(['connectors', 'update', 'custom.shop', '-', ...more], { input: manifest(['orders', 'refunds']) });
    const shown = await update('--dry-run');
    expect([shown.code, shown.out]).toEqual([0, expect.stringMatching(/added +stream +refunds/)]);
    expect((await cli.run(['connectors', 'custom.shop', '--json'])).out).toContain('"version": "1"');
    expect((await update('--yes')).code).toBe(0);
    expect((await cli.run(['connectors', 'custom.shop', '--json'])).out).toContain('"version": "2"');
    expect((await cli.run(['connectors', 'delete', 'custom.shop', '--yes'])).code).toBe(0);
    expect((await cli.run(['connectors', 'custom.shop'])).code).toBe(4);
  }, 60_000);
});

test('sources draft names the size of a document that is too large: 1', async () => {
  const { code, err } = await cli.run(['sources', 'draft', '--openapi', '-'], { input: 'x'.repeat(8_000_001) });
  expect([code, err]).toEqual([1, expect.stringContaining('has 8,000,001 characters, and at most 8,000,000')]);
});

describe('sources preview', () => {
  test('shows the first page of a definition from a file: 0; an error of the service: 1', async () => {
    const shop = startHttpServer();
    const { allow } = service.deps.egress;
    service.deps.egress.allow = [new URL(shop.url).host];
    try {
      shop.on('/orders', ({ headers }) =>
        headers.authorization === 'Bearer the-right-token'
          ? Response.json({ data: [{ id: 1, total: 2.5 }], next: 'p2' })
          : new Response('no', { status: 401 }),
      );
      const pagination = { type: 'cursor', token: 'next' };
      const request = { path: '/orders', query: { after: '{{ page.token }}' } };
      const definition = JSON.stringify({
        base_url: shop.url,
        authentication: { type: 'bearer', token: '{{ secrets.token }}' },
        streams: [{ name: 'orders', request, records: 'data', primary_key: 'id', pagination }],
      });
      const preview = (token: string, ...more: string[]) =>
        cli.run(['sources', 'preview', '--file', '-', ...more], {
          input: JSON.stringify({ definition, secrets: { token } }),
        });
      const { code, out } = await preview('the-right-token', '--stream', 'orders');
      expect([code, out.replaceAll(shop.url, '').trimEnd().split('\n')]).toEqual([
        0,
        [
          'requests   GET /orders  200',
          'records    1',
          '           {"id":1,"total":2.5}',
          'fields     id integer key',
          '           total number',
          'next page  GET /orders?after=p2',
        ],
      ]);
      const wrong = await preview('the-wrong-token', '--json');
      expect([wrong.code, JSON.parse(wrong.out).exchanges[0].response.status]).toEqual([1, 401]);
      expect(wrong.err).toContain('(unauthorized)');
      expect(wrong.out + wrong.err).not.toContain('the-wrong-token');
      const other = await cli.run(['sources', 'preview', '--connector', 'demo']);
      expect([other.code, other.err]).toEqual([1, expect.stringContaining('reads no single pages')]);
    } finally {
      service.deps.egress.allow = allow;
      await shop.close();
    }
  }, 60_000);
});

describe('run --follow', () => {
  test('0 on success, with a line per status change in a pipe', async () => {
    const { name } = await connection({ rows: 50 });
    const { code, out } = await cli.run(['run', name, '--follow']);
    expect(code).toBe(0);
    expect(out).toContain('stream_1: succeeded, 50 rows');
    expect(out).toMatch(/succeeded: 50 rows in .*rows\/s/);
  });

  test('1 on failure, with the reason', async () => {
    const { id } = await connection({ fault: 'config' });
    const { code, err } = await cli.run(['run', id, '-f']);
    expect(code).toBe(1);
    expect(err).toContain('Run failed');
  });

  test('6 on partial success', async () => {
    const { name } = await connection({ streams: 2, fault: 'config', fault_stream: 'stream_2' });
    expect((await cli.run(['run', name, '--follow'])).code).toBe(6);
  });

  test('draws progress on a terminal; Ctrl-C requests a stop: 7', async () => {
    const { id, name } = await connection(SLOW);
    const session = cli.terminal(['run', name, '--follow']);
    await session.sees('rows/s');
    expect(session.screen()).toMatch(/stream_1 .* [1-9]\d* running/);
    session.type('\u0003');
    await session.sees('Stop requested');
    expect(await session.ended()).toBe(7);
    const [run] = (await call('GET', `/connections/${id}/runs`)).body;
    expect(run.status).toBe('stopped');
  }, 60_000);

  test('a second Ctrl-C detaches: 130', async () => {
    const { id, name } = await connection({ ...SLOW, fault: 'hang', fault_at_row: 20 });
    const session = cli.terminal(['run', name, '--follow']);
    await session.sees('running');
    session.type('\u0003');
    await session.sees('Stop requested');
    session.type('\u0003');
    const code = await session.ended();
    expect({ code, screen: session.screen() }).toMatchObject({ code: 130 });
    await until(async () => (await call('GET', `/connections/${id}/runs`)).body[0].status === 'stopped', {
      timeout_ms: 30_000,
    });
  }, 60_000);
});

describe('runs and logs', () => {
  test('find a run by connection, number and id', async () => {
    const { name } = await connection({ rows: 7 });
    await cli.run(['run', name, '--follow']);
    await cli.run(['run', name, '--follow']);
    const [last, first] = JSON.parse((await cli.run(['runs', 'list', name, '--json'])).out);
    const shown = async (run: string) => JSON.parse((await cli.run(['runs', 'show', run, '--json'])).out).run.id;
    expect(await shown(name)).toBe(last.id);
    expect(await shown(`${name}#1`)).toBe(first.id);
    expect(await shown(first.id)).toBe(first.id);
    expect((await cli.run(['runs', 'show', `${name}#9`])).code).toBe(4);
    expect((await cli.run(['runs', 'stop', first.id])).out).toContain('already ended');
    const log = (await cli.run(['runs', 'log', name])).out.trim().split('\n');
    const lines = ['Queued by', 'Started after', 'Attempt 1 begins', 'are open', 'Reads all rows', 'Read 7 rows'];
    const steps = [
      ...lines,
      'Replaced the rows of stream_1 in',
      'Stream succeeded: 7 rows read, 7 loaded',
      'Run succeeded',
    ];
    expect(log).toEqual(steps.map((step) => expect.stringContaining(step)));
    expect((await cli.run(['runs', 'log', name, '--level', 'warning'])).err).toContain('No matching lines');
    expect((await cli.run(['status'])).out).toMatch(/behind +.+: .+ s behind/);
    const [trend] = (await call('GET', `/connections/${last.connection_id}/runs/${last.id}/trends`)).body;
    expect(trend).toMatchObject({ median_rows_loaded: 7, runs: [{ connection_run_id: first.id, number: 1 }] });
    expect(trend.runs).toHaveLength(1);
    expect(trend.median_duration_ms).toBe(trend.runs[0].duration_ms);
  });

  test('print and filter a network log of several gzip members', async () => {
    const { name } = await connection({ rows: 30, streams: 2, record_requests: true });
    await cli.run(['run', name, '--follow']);
    const { out } = await cli.run(['logs', name]);
    expect(out).toContain('stream_1');
    expect(out).toContain('stream_2');
    const all = (await cli.run(['logs', name, '--json'])).out.trim().split('\n');
    expect(all).toHaveLength(out.trim().split('\n').length);
    const one = (await cli.run(['logs', name, '--json', '--stream', 'stream_2'])).out.trim().split('\n');
    expect(new Set(one.map((line) => JSON.parse(line).stream_name))).toEqual(new Set(['stream_2']));
    expect(one.length).toBe(all.length / 2);
    expect((await cli.run(['logs', name, '--status', '2xx', '--json'])).out.trim().split('\n')).toHaveLength(
      all.length,
    );
    expect(await cli.run(['logs', name, '--status', '404'])).toMatchObject({
      out: '',
      err: expect.stringContaining('No matching'),
    });
    expect((await cli.run(['logs', name, '--bodies'])).out).toContain('    > ');
  });
});

describe('custom runs', () => {
  test('are shown as a table before they are launched', async () => {
    const { name } = await connection();
    const days = ['--start', '2025-01-01', '--end', '2025-01-03', '--split', 'day'];
    const plan = await cli.run(['plan', name, ...days]);
    expect(plan).toMatchObject({ code: 0, out: expect.stringContaining('2025-01-02') });
    expect(await cli.run(['launch', name, ...days])).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
    const launched = await cli.run(['launch', name, ...days, '--yes']);
    expect(launched.out).toContain('launched: 3 runs');
  });
});

describe('other commands', () => {
  test('triggers test marks the error in a rule: 1', async () => {
    const { code, err } = await cli.run(['triggers', 'test', 'event == "x" &&']);
    expect(code).toBe(1);
    expect(err).toMatch(/\^ .*parse_error/);
    const right = await cli.run(['triggers', 'test', 'event == "connection_created"']);
    expect(right.out).toMatch(/[1-9]\d* of \d+ events match/);
  });

  test('status and events show what needs attention', async () => {
    const { name, id } = await connection({ fault: 'config', fault_at_row: 1 });
    const status = JSON.parse((await cli.run(['status', '--json'])).out);
    expect(status).toMatchObject({ service: { status: 'ready' }, connections: { running: 0 } });
    expect((await cli.run(['status'])).out).toContain(`${status.connections.total} `);
    const { out } = await cli.run([
      'events',
      '--connection',
      name,
      '--event',
      'connection_created',
      '--jq',
      '.[].event',
    ]);
    expect(out.trim()).toBe('connection_created');
    expect((await cli.run(['events', '--event', 'unheard'])).code).toBe(1);
    expect((await cli.run(['open', name, '--print'])).out.trim()).toEndWith(`/console/connections/${id}`);
  });

  test('errors propose what was meant, and say what cannot be read: 4 and 2', async () => {
    const zebra = { name: 'Zebra shop', connector_type: 'source', connector_name: 'sample' };
    expect((await call('POST', '/account_connectors', zebra)).status).toBe(201);
    for (const command of ['show', 'delete']) {
      const { code, err } = await cli.run(['sources', command, 'zebra-shop']);
      expect([code, err]).toEqual([4, expect.stringContaining('Did you mean "Zebra shop"?')]);
    }
    const folder = await cli.run(['triggers', 'create', '--file', cli.folder]);
    expect(folder).toMatchObject({ code: 2, err: expect.stringContaining(`A folder, not a file: ${cli.folder}`) });
    const { name } = await make.destination();
    const create = ['connections', 'create', '--source', 'Zebra shop', '--destination', name];
    const zone = await cli.run([...create, '--timezone', 'Europe/Berlin']);
    expect(zone).toMatchObject({ code: 2, err: expect.stringContaining('--timezone needs --cron or --every') });
    const every = await cli.run([...create, '--every', 'often']);
    expect(every).toMatchObject({ code: 2, err: expect.stringContaining('"often" is not a whole number') });
  });

  test('cases lists those of a status, and refuses a status that no case has: 2', async () => {
    const { db, now } = service.deps;
    const [trigger] = await db.select().from(triggers).limit(1);
    const at = now().toISOString();
    await db.insert(cases).values({
      account_id: service.account_id,
      trigger_id: trigger!.id,
      number: 4711,
      title: 'low: It failed',
      status: 'open',
      severity: 'low',
      dedup_key: 'cli',
      group: {},
      first_event_at: at,
      last_event_at: at,
      opened_at: at,
    });
    expect((await cli.run(['cases', '--status', 'open'])).out).toContain('It failed');
    expect((await cli.run(['status'])).out).toContain('#4711 low: It failed');
    expect(await cli.run(['cases', '--status', 'opne'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('opne'),
    });
    expect((await cli.run(['cases', '--status', 'suppressed'])).out).toContain('No suppressed cases');
  });

  test('notifications set --mine sets quiet hours of the caller alone', async () => {
    const mine = ['notifications', 'set', '--mine'];
    const { code, out } = await cli.run([...mine, '--quiet', '20:00-09:00', '--urgent', 'high']);
    expect([code, out]).toEqual([0, expect.stringContaining('20:00 to 09:00')]);
    expect((await cli.run(['notifications', 'show', '--mine', '-o', 'json'])).out).toContain(
      '"urgent_severity": "high"',
    );
    expect((await cli.run(['notifications', 'show'])).out).toContain('none');
    const wrong = await cli.run([...mine, '--digest', '08:00']);
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('--mine takes --quiet and --urgent') });
    expect((await cli.run([...mine, '--quiet', 'off'])).out).toContain('none');
  });

  test('connections update changes what is given', async () => {
    const { name } = await connection();
    const changes = [
      '--cron',
      '30 7 * * *',
      '--timezone',
      'Europe/Berlin',
      '--tag',
      'sales',
      '--set',
      'backfill_days=3',
    ];
    const { code, out } = await cli.run(['connections', 'update', name, ...changes, '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      schedule: { cron_expression: '30 7 * * *', timezone: 'Europe/Berlin' },
      tags: ['sales'],
      backfill_days: 3,
    });
    expect((await cli.run(['connections', 'update', name])).code).toBe(2);
    expect((await cli.run(['connections', 'update', name, '--set', 'unheard=1'])).err).toContain('unheard');
    const manual = await cli.run(['connections', 'update', name, '--manual', '--jq', '.schedule.type']);
    expect(manual.out.trim()).toBe('manual');
  });

  test('triggers create takes flags and a file', async () => {
    const rule = ['--rule', 'event == "connection_failed"'];
    const created = await cli.run(['triggers', 'create', '--name', 'Pause it', ...rule, '--pause', '--json']);
    expect(JSON.parse(created.out)).toMatchObject({ name: 'Pause it', actions: [{ type: 'pause_connection' }] });
    const file = 'actions: [{ type: rerun_run, max_reruns: 2 }]\nthreshold: 3\n';
    const read = ['triggers', 'create', '--name', 'Rerun it', ...rule, '--file', '-', '--jq', '.threshold'];
    expect((await cli.run(read, { input: file })).out.trim()).toBe('3');
    expect((await cli.run(['triggers', 'create', '--name', 'None', ...rule])).code).toBe(2);
    expect((await cli.run(['triggers', 'delete', 'Pause', '--yes'])).code).toBe(4);
    expect((await cli.run(['triggers', 'delete', 'Pause it', '--yes'])).code).toBe(0);
  });

  test('api sends any request and reports its status', async () => {
    const { name, id } = await connection();
    const change = ['-F', 'status=paused', '--jq', '.status'];
    expect((await cli.run(['api', `/connections/${id}`, ...change])).out.trim()).toBe('paused');
    expect((await cli.run(['api', '/connections', '--jq', `.[] | select(.name == "${name}") | .id`])).out.trim()).toBe(
      id,
    );
    const missing = await cli.run(['api', '/connections/019a0000-0000-7000-8000-000000000001']);
    expect(missing).toMatchObject({ code: 4, err: expect.stringMatching(/HTTP 404 \(request [\w-]{36}\)/) });
    expect(JSON.parse(missing.out)).toMatchObject({ code: 'not_found' });
    expect((await cli.run(['api', 'https://example.org/'])).code).toBe(2);
  });

  test('users, usage, cases and connections work', async () => {
    expect((await cli.run(['users', 'invite', 'ada@example.com', '--role', 'Viewer'])).out).toContain('http');
    expect((await cli.run(['users', 'disable', 'ada@example.com', '--yes'])).out).toContain('Disabled');
    expect((await cli.run(['usage'])).out).toContain('credits');
    expect((await cli.run(['cases'])).code).toBe(0);
    const { name } = await connection();
    expect((await cli.run(['connections', 'pause', name])).out).toContain('paused');
    expect((await cli.run(['connections', 'resume', name])).out).toContain('active');
    expect((await cli.run(['connections', 'delete', name])).code).toBe(2);
    expect((await cli.run(['connections', 'delete', name, '-y'])).code).toBe(0);
    expect((await cli.run(['connections', 'show', name])).code).toBe(4);
  });
});
