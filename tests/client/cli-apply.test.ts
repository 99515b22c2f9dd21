import { afterAll, describe, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { differences } from '../../client/cli/apply/difference.ts';
import { createApp } from '../../server/http/app.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { CLI, commandLine } from '../support/cli.ts';
import { testDeps } from '../support/database.ts';

const service = await testDeps({ role: 'worker' });
const { call } = testApi(service);
const app = createApp(service.deps).listen({ hostname: '127.0.0.1', port: 0 });
const worker = await startWorker(service.deps);
afterAll(async () => {
  await app.server?.stop(true);
  await worker.stop();
});
const login = { url: `http://127.0.0.1:${app.server!.port}`, key: service.api_key };
const cli = commandLine(login);
/** The kernel ends each write to a file, as it does on a full disk. */
const ON_A_FULL_DISK = ['sh', '-c', 'trap "" XFSZ; ulimit -f 0; exec "$@"', 'sh', process.execPath, CLI];

const PIPELINES = `version: 1
sources:
  Shop:
    connector: sample
    parameters:
      rows: 20
      streams: 2
      token: \${SHOP_TOKEN}
destinations:
  Warehouse:
    connector: sample
    parameters: { folder: warehouse }
connections:
  Shop to warehouse:
    source: Shop
    destination: Warehouse
    schedule: { type: cron, cron_expression: 0 6 * * *, timezone: Europe/Berlin }
    tags: [sales]
    streams:
      - { name: stream_1, sync_mode: incremental, destination_sync_mode: append, cursor_field: [updated_at] }
triggers:
  Stop what keeps failing:
    rule: event == "connection_failed" && retry_count > 3
    actions:
      - { type: run_connection, connection: Shop to warehouse }
`;
const secrets = { SHOP_TOKEN: 'the first token' };

const file = join(cli.folder, 'pipelines.yaml');
async function apply(text: string, ...flags: string[]) {
  writeFileSync(file, text);
  return cli.run(['apply', '-f', 'pipelines.yaml', ...flags], { env: secrets });
}
const sources = async () => (await call('GET', '/account_connectors?connector_type=source')).body;
const connection = async () => (await call('GET', '/connections')).body[0];

describe('apply', () => {
  test('--dry-run shows the changes without applying them: 2', async () => {
    const { code, out } = await apply(PIPELINES, '--dry-run');
    expect(code).toBe(2);
    expect(out).toContain('+ create source "Shop"');
    expect(out).toContain('4 to create, 0 to update, 0 to delete, 0 unchanged');
    expect(await sources()).toEqual([]);
  });

  test('--dry-run --json is one document without secrets', async () => {
    const { code, out } = await apply(PIPELINES, '--dry-run', '--json');
    expect(code).toBe(2);
    const document = JSON.parse(out);
    expect(document).toMatchObject({ file: 'pipelines.yaml', dry_run: true, unchanged: 0 });
    const step = (kind: string, name: string) => ({ action: 'create', kind, name, status: 'planned', id: null });
    expect(document.steps).toMatchObject([
      step('sources', 'Shop'),
      step('destinations', 'Warehouse'),
      step('connections', 'Shop to warehouse'),
      step('triggers', 'Stop what keeps failing'),
    ]);
    expect(out).not.toContain('the first token');
    expect((await apply(PIPELINES, '--json')).code).toBe(2);
    expect(await sources()).toEqual([]);
  });

  test('plans each template that `templates show` prints, given its variables', async () => {
    const { out: listed } = await cli.run(['templates', 'list', '-o', 'name']);
    const names = listed.trim().split('\n');
    expect(names).toContain('postgres-to-parquet');
    // Those whose sides the service checks without calling them.
    for (const name of ['postgres-to-postgres-continuous', 'webhooks-to-postgres']) {
      const { code, out } = await cli.run(['templates', 'show', name]);
      expect(code).toBe(0);
      expect(out).toMatch(/^# .+\n# .+\n\n# Needs:\n# - /);
      writeFileSync(file, out);
      const variables = [...out.matchAll(/\$\{(\w+)\}/g)].map(([, variable]) => [variable!, 'localhost']);
      const planned = await cli.run(['apply', '-f', 'pipelines.yaml', '--dry-run'], {
        env: Object.fromEntries(variables),
      });
      expect(planned.out).toContain('3 to create, 0 to update, 0 to delete, 0 unchanged');
    }
  });

  test('applies nothing without --yes and a terminal: 2', async () => {
    expect((await apply(PIPELINES)).code).toBe(2);
    expect(await sources()).toEqual([]);
  });

  test('creates everything in order of dependency', async () => {
    const { code, out, err } = await apply(PIPELINES, '--yes');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out.match(/done/g)).toHaveLength(4);
    const made = await connection();
    expect(made).toMatchObject({ name: 'Shop to warehouse', tags: ['sales'], schedule: { timezone: 'Europe/Berlin' } });
    expect(made.streams.filter((stream: { selected: boolean }) => stream.selected)).toHaveLength(1);
    const [trigger] = (await call('GET', '/automation/triggers')).body;
    expect(trigger.actions[0].connection_id).toBe(made.id);
  });

  test('finds no changes the second time', async () => {
    const before = await connection();
    const { code, out } = await apply(PIPELINES, '--yes');
    expect({ code, out: out.trim() }).toEqual({ code: 0, out: 'No changes: 4 items match pipelines.yaml' });
    expect(await connection()).toEqual({ ...before, schedule: expect.anything() });
  });

  test('shows and applies only the differences', async () => {
    const changed = PIPELINES.replace('0 6 * * *', '30 7 * * *').replace('retry_count > 3', 'retry_count > 5');
    const { code, out } = await apply(changed, '--yes');
    expect(code).toBe(0);
    expect(out).toContain('schedule.cron_expression: "0 6 * * *" → "30 7 * * *"');
    expect(out).toContain('0 to create, 2 to update, 0 to delete, 2 unchanged');
    expect((await connection()).schedule.cron_expression).toBe('30 7 * * *');
    const again = await apply(changed, '--yes', '--json');
    expect({ ...again, out: JSON.parse(again.out) }).toEqual({
      code: 0,
      err: '',
      out: { file: 'pipelines.yaml', dry_run: false, unchanged: 4, steps: [] },
    });
  });

  test('--json lists the changes with their values and ids', async () => {
    const { code, out, err } = await apply(PIPELINES.replace('retry_count > 3', 'retry_count > 4'), '--yes', '--json');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const [trigger] = (await call('GET', '/automation/triggers')).body;
    const [first, second] = JSON.parse(out).steps;
    expect(first).toMatchObject({
      action: 'update',
      kind: 'connections',
      status: 'done',
      changes: [{ path: 'schedule.cron_expression', from: '30 7 * * *', to: '0 6 * * *' }],
    });
    expect(second).toMatchObject({ action: 'update', kind: 'triggers', id: trigger.id, status: 'done', error: null });
  });

  test('a different secret is a change, and its value is never shown', async () => {
    const other = { SHOP_TOKEN: 'the second token' };
    const text = ['apply', '-f', 'pipelines.yaml', '--yes'];
    const first = await cli.run(text, { env: other });
    expect(first.out).toContain('parameters.token: "**********" → "**********"');
    expect(first.out).not.toContain('second token');
    expect((await cli.run(text, { env: other })).out).toContain('No changes');
    expect((await cli.run(text, { env: secrets })).out).toContain('1 to update');
    expect((await cli.run([...text, '--rotate-secrets'], { env: secrets })).out).toContain('1 to update');
  });

  test('private keys and secrets of updated items are not shown', async () => {
    const webhook = '      - { type: call_webhook, url: https://example.org/hook, secret: a secret of many letters }\n';
    const { out } = await apply(`${PIPELINES}${webhook}`, '--dry-run');
    expect(out).toContain('"secret":"**********"');
    expect(out).not.toContain('many letters');
    const tunnel = { host: 'bastion', username: 'me', private_key: 'a key of many letters' };
    const [change] = differences({ ssh_tunnel: tunnel }, { ssh_tunnel: null });
    expect(change).toEqual({ path: 'ssh_tunnel', from: null, to: { ...tunnel, private_key: '**********' } });
    const step = differences({ actions: [{ name: 'a', secret: 'b' }] }, { actions: [{ name: 'a' }] });
    expect(JSON.stringify(step)).not.toContain('"b"');
  });

  test('streams removed from the file are deselected', async () => {
    const two = PIPELINES.replace('    streams:\n', '    streams:\n      - { name: stream_2 }\n');
    expect((await apply(two, '--yes')).code).toBe(0);
    const selected = async () =>
      (await connection()).streams
        .filter((one: { selected: boolean }) => one.selected)
        .map((one: { name: string }) => one.name);
    expect(await selected()).toEqual(['stream_1', 'stream_2']);
    expect((await apply(two, '--yes')).out).toContain('No changes');
    expect((await apply(PIPELINES, '--yes')).code).toBe(0);
    expect(await selected()).toEqual(['stream_1']);
    expect((await apply(PIPELINES, '--yes')).out).toContain('No changes');
  });

  test('asks on a terminal and applies nothing when declined', async () => {
    writeFileSync(file, PIPELINES.replace('[sales]', '[marketing]'));
    const session = cli.terminal(['apply', '-f', 'pipelines.yaml'], { env: secrets });
    await session.sees('Apply these changes?');
    session.type('n');
    expect(await session.ended()).toBe(1);
    expect((await connection()).tags).toEqual(['sales']);
  });
});

describe('errors name file, line and column', () => {
  const cases: [what: string, text: string, said: string][] = [
    ['broken YAML', PIPELINES.replace('version: 1', 'version: [1'), 'pipelines.yaml:2:'],
    [
      'an unknown key',
      PIPELINES.replace('connector: sample', 'conector: sample'),
      'pipelines.yaml:4:5: unknown key "conector"',
    ],
    [
      'a variable that is not set',
      PIPELINES.replace('SHOP_TOKEN', 'NOT_SET'),
      'pipelines.yaml:8:14: the environment variable NOT_SET',
    ],
    [
      'an unknown source',
      PIPELINES.replace('source: Shop', 'source: Stop'),
      'pipelines.yaml:15:5: source "Stop" exists neither',
    ],
    ['a value that the connector rejects', PIPELINES.replace('rows: 20', 'rows: -3'), 'pipelines.yaml:6:7: '],
    ['a value that the service rejects', PIPELINES.replace('0 6 * * *', '0 6 * *'), 'pipelines.yaml:17:'],
    [
      'another connector',
      PIPELINES.replace('connector: sample', 'connector: postgres'),
      'pipelines.yaml:4:5: the connector',
    ],
    [
      'a name twice',
      PIPELINES.replace('destinations:', '  SHOP: { connector: sample }\ndestinations:'),
      'pipelines.yaml:9:3: duplicate name "SHOP"',
    ],
  ];
  test.each(cases)('%s', async (_, text, said) => {
    const { code, err } = await apply(text, '--yes');
    expect(err).toContain(said);
    // Refused before the first step.
    expect({ code, applied: err.includes('Not applied') }).toEqual({ code: 2, applied: false });
  });

  test('a dry run asks the service, and its errors are no changes: 1', async () => {
    const unknown = PIPELINES.replace('  Shop:\n', '  Other:\n    connector: unheard\n  Shop:\n');
    const { code, err } = await apply(unknown, '--dry-run');
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('pipelines.yaml:4:5: Unknown connector') });
    const wrong = unknown.replace('unheard', 'sample\n    parameters: { rows: many }');
    expect(await apply(wrong, '--dry-run')).toMatchObject({ code: 1, err: expect.stringContaining('.yaml:5:19: ') });
    const rule = PIPELINES.replace('retry_count > 3', 'retry_count >');
    expect(await apply(rule, '--dry-run')).toMatchObject({ code: 1, err: expect.stringContaining('.yaml:23:5: ') });
    const stream = PIPELINES.replace('  Shop to warehouse:\n', '  Second:\n').replace('stream_1', 'stream_9');
    expect(await apply(stream, '--dry-run')).toMatchObject({ code: 1, err: expect.stringContaining('stream_9') });
    expect((await apply(PIPELINES, '--dry-rnu')).code).toBe(1);
    expect((await apply(PIPELINES, '--dry-run')).code).toBe(0);
  });

  test('a source that fails its test is not saved, and its dependents are not created: 1', async () => {
    const text = PIPELINES.replace(
      '  Shop:\n',
      '  Broken:\n    connector: sample\n    parameters: { check: fails }\n  Shop:\n',
    );
    const { code, err } = await apply(text, '--yes');
    expect(code).toBe(1);
    expect(err).toContain('was not saved');
    const document = JSON.parse((await apply(text, '--yes', '--json')).out);
    expect(document.steps).toMatchObject([
      { name: 'Broken', status: 'failed', id: null, error: expect.stringContaining('was not saved') },
      ...document.steps.slice(1),
    ]);
    expect(document.steps.slice(1).every(({ status }: { status: string }) => status === 'planned')).toBe(true);
    expect((await sources()).map(({ name }: { name: string }) => name)).toEqual(['Shop']);
  });
});

describe('roles and users', () => {
  const PEOPLE = `roles:
  Operator: { permissions: [connections.run] }
users:
  ada@example.com: { full_name: Ada, roles: [Viewer, Operator] }
`;

  test('are created and changed, and never deleted', async () => {
    const created = await apply(PEOPLE, '--yes');
    expect(created).toMatchObject({ code: 0, out: expect.stringContaining('2 to create') });
    expect((await apply(PEOPLE, '--dry-run')).code).toBe(0);
    const more = PEOPLE.replace('connections.run', 'connections.run, cases.update').replace(
      '[Viewer, Operator]',
      '[Operator]',
    );
    expect(await apply(more, '--yes')).toMatchObject({ code: 0, out: expect.stringContaining('2 to update') });
    const user = (await call('GET', '/users')).body.find((one: { email: string }) => one.email === 'ada@example.com');
    expect(user.roles).toMatchObject([{ name: 'Operator' }]);
    const exported = Bun.YAML.parse((await cli.run(['export', '--users'])).out) as Record<
      string,
      Record<string, object>
    >;
    expect(exported.users!['ada@example.com']).toEqual({ full_name: 'Ada', roles: ['Operator'] });
    expect(exported.roles).toEqual({ Operator: { permissions: ['connections.run', 'cases.update'] } });
    expect((await apply(PIPELINES, '--prune', '--dry-run')).code).toBe(0);
    const unknown = await apply(PEOPLE.replace('[Viewer, Operator]', '[Vieuwer]'), '--dry-run');
    expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining('pipelines.yaml:4:') });
  });
});

describe('a saved plan', () => {
  test('is applied as it was reviewed, or not at all', async () => {
    const changed = PIPELINES.replace('retry_count > 3', 'retry_count > 8');
    expect((await apply(changed, '--dry-run', '--save-plan', 'plan.json')).code).toBe(2);
    const plan = readFileSync(join(cli.folder, 'plan.json'), 'utf8');
    expect(plan).not.toContain('the first token');
    writeFileSync(file, PIPELINES);
    const stale = JSON.parse(plan);
    stale.steps[0].changes[0].from = 'something else';
    writeFileSync(join(cli.folder, 'stale.json'), JSON.stringify(stale));
    const refused = await cli.run(['apply', '--plan', 'stale.json'], { env: secrets });
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('has changed since the plan was saved') });
    const applied = await cli.run(['apply', '--plan', 'plan.json'], { env: secrets });
    expect(applied).toMatchObject({ code: 0, out: expect.stringContaining('done  update trigger') });
    expect((await cli.run(['apply', '--plan', 'plan.json'], { env: secrets })).code).toBe(1);
    expect((await apply(changed, '--dry-run')).code).toBe(0);
    expect((await apply(PIPELINES, '--yes')).code).toBe(0);
  });
});

describe('a folder of files', () => {
  test('is one plan, with every name once', async () => {
    const folder = join(cli.folder, 'pipelines');
    mkdirSync(folder);
    const [head = '', rest = ''] = PIPELINES.split('connections:\n');
    writeFileSync(join(folder, 'a.yaml'), head);
    writeFileSync(join(folder, 'b.yml'), `connections:\n${rest}`);
    const folderPlan = () => cli.run(['apply', '-f', 'pipelines', '--dry-run'], { env: secrets });
    expect(await folderPlan()).toMatchObject({ code: 0, out: expect.stringContaining('No changes: 4 items') });
    writeFileSync(join(folder, 'c.yaml'), 'sources:\n  shop: { connector: sample }\n');
    expect(await folderPlan()).toMatchObject({
      code: 1,
      err: expect.stringContaining('pipelines/c.yaml:2:3: duplicate'),
    });
  });
});

describe('export', () => {
  test('writes a file in which apply finds no changes', async () => {
    const { out } = await cli.run(['export', '-o', 'exported.yaml']);
    expect(out).toContain('set SHOP_TOKEN');
    const text = readFileSync(join(cli.folder, 'exported.yaml'), 'utf8');
    expect(text).not.toContain('the first token');
    const again = await cli.run(['apply', '-f', 'exported.yaml', '--yes'], { env: secrets });
    expect(again).toMatchObject({ code: 0, out: expect.stringContaining('No changes: 4 items') });
  });

  test.each([
    ['an export', ['export', '-o', 'full.yaml']],
    ['a plan', ['apply', '-f', join(cli.folder, 'exported.yaml'), '--dry-run', '--save-plan', 'full.yaml']],
    ['a login', ['login', `http://127.0.0.1:${app.server!.port}`, '--key-stdin']],
  ])('that finds no room for %s keeps the former file, and names the reason', async (_, args) => {
    const limited = commandLine(login, ON_A_FULL_DISK);
    const path = args[0] === 'login' ? limited.file : join(limited.folder, 'full.yaml');
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, 'the former file');
    const { code, err } = await limited.run(args, { env: secrets, input: service.api_key });
    expect([code, err.trim()]).toEqual([
      1,
      `Cannot write ${path.endsWith('.yaml') ? 'full.yaml' : path}: EFBIG: file too large, write`,
    ]);
    expect(readdirSync(dirname(path)).filter((name) => name.includes('partial'))).toEqual([]);
    expect(readFileSync(path, 'utf8')).toBe('the former file');
  });

  test('leaves out what the service fills in', async () => {
    const exported = Bun.YAML.parse((await cli.run(['export'])).out) as Record<string, Record<string, object>>;
    expect(Object.keys({ ...exported.sources!.Shop, ...exported.destinations!.Warehouse })).toEqual([
      'connector',
      'parameters',
    ]);
    expect(Object.keys(exported.connections!['Shop to warehouse']!)).toEqual([
      'source',
      'destination',
      'schedule',
      'streams',
      'tags',
    ]);
    expect(Object.keys(exported.triggers!['Stop what keeps failing']!)).toEqual(['rule', 'group_by', 'actions']);
  });

  test('restores everything after --prune', async () => {
    const gone = await apply('version: 1\n', '--prune', '--yes');
    expect(gone).toMatchObject({ code: 0, out: expect.stringContaining('0 to create, 0 to update, 4 to delete') });
    expect(await connection()).toBeUndefined();
    expect(await sources()).toEqual([]);
    const again = await cli.run(['apply', '-f', 'exported.yaml', '--yes'], { env: secrets });
    expect(again).toMatchObject({ code: 0, out: expect.stringContaining('4 to create') });
    expect((await cli.run(['apply', '-f', 'exported.yaml'], { env: secrets })).out).toContain('No changes');
  });
});

test('--prune deletes within the owner that the file names', async () => {
  const of = (owner: string | null, ...names: string[]) =>
    [
      'version: 1',
      ...(owner === null ? [] : [`owner: ${owner}`]),
      'sources:',
      ...names.map((name) => `  ${name}: { connector: sample, parameters: { rows: 1 } }`),
    ].join('\n');
  const named = async () => {
    const all: { name: string; owner: string | null }[] = await sources();
    return all.flatMap(({ name, owner }) => (name.startsWith('own_') ? [`${owner} ${name}`] : [])).toSorted();
  };
  expect((await apply(of('shop', 'own_a', 'own_b'), '--yes')).code).toBe(0);
  expect((await apply(of('sales', 'own_c'), '--yes')).code).toBe(0);
  expect((await apply(of(null, 'own_d'), '--yes')).code).toBe(0);
  const pruned = await apply(of('shop', 'own_a'), '--prune', '--yes');
  expect(pruned.out).toContain('0 to create, 0 to update, 1 to delete');
  expect(await named()).toEqual(['null own_d', 'sales own_c', 'shop own_a']);
  const unowned = await apply(of(null, 'own_e'), '--prune', '--dry-run');
  expect(unowned.out).toContain('- delete source "own_d"');
  expect(unowned.out).not.toMatch(/own_a|own_c/);
  const taken = await apply(of('sales', 'own_a', 'own_c'), '--dry-run');
  expect(taken.out).toContain('owner: "shop" → "sales"');
  expect(Bun.YAML.parse((await cli.run(['export', '--owner', 'sales'])).out)).toMatchObject({
    owner: 'sales',
    sources: { own_c: { connector: 'sample' } },
  });
  expect((await apply('version: 1\nowner: [a]\n', '--dry-run')).err).toContain(':2:1: owner is the name');
  for (const owner of ['shop', 'sales']) await apply(`version: 1\nowner: ${owner}\n`, '--prune', '--yes');
  expect(await named()).toEqual(['null own_d']);
});

test('a tunnel is shown with its public key and without its private key', async () => {
  const { public_key, encrypted_private_key } = (await call('POST', '/account_connectors/generate_ssh_key')).body;
  const { status } = await call('POST', '/account_connectors', {
    name: 'Behind',
    connector_type: 'destination',
    connector_name: 'postgres',
    parameters: { host: 'db', database: 'd', username: 'u', password: 'p' },
    ssh_tunnel: { host: 'bastion', username: 'tunnel', encrypted_private_key },
    test_connection: false,
  });
  expect(status).toBe(201);
  const { out } = await cli.run(['destinations', 'show', 'Behind']);
  expect(out).toContain('tunnel@bastion:22');
  expect(out).toContain(public_key);
  expect(out).toContain('host key recorded at the first login');
  expect(out).not.toContain(encrypted_private_key);
});

test('the step of the GitHub Action shows changes, applies them, and fails on drift', async () => {
  const action = commandLine({ url: `http://127.0.0.1:${app.server!.port}`, key: service.api_key }, [
    'bash',
    join(import.meta.dir, '../../server/deploy/github-action/apply.sh'),
  ]);
  const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter);
  const output = join(action.folder, 'output');
  const summary = join(action.folder, 'summary');
  const step = async (APPLY_MODE: string) => {
    writeFileSync(output, '');
    const files = { GITHUB_OUTPUT: output, GITHUB_STEP_SUMMARY: summary };
    const env = { PATH, ...files, APPLY_FILE: 'more.yaml', APPLY_MODE, APPLY_PRUNE: 'false' };
    const { code, out } = await action.run([], { env });
    return { code, out, changes: readFileSync(output, 'utf8').trim() };
  };
  const text = 'version: 1\nsources:\n  By action:\n    connector: sample\n    parameters: { rows: 1 }\n';
  writeFileSync(join(action.folder, 'more.yaml'), text);
  expect(await step('drift')).toMatchObject({ code: 2, changes: 'changes=true' });
  const { body: drifted } = await call('GET', '/automation/events?event=configuration_drifted');
  expect(drifted).toMatchObject([
    { payload: { file: 'more.yaml', changes: 1, changed_items: ['create source "By action"'] } },
  ]);
  expect(await step('apply')).toMatchObject({ code: 0, changes: 'changes=true' });
  expect((await sources()).map(({ name }: { name: string }) => name)).toContain('By action');
  expect(await step('drift')).toMatchObject({ code: 0, changes: 'changes=false' });
  const { body: matched } = await call('GET', '/automation/events?event=configuration_matched');
  expect(matched).toMatchObject([{ payload: { file: 'more.yaml', changes: 0 } }]);
  expect(readFileSync(summary, 'utf8')).toContain('+ create source "By action"');
  writeFileSync(join(action.folder, 'more.yaml'), 'version: 1\nsources: 1\n');
  const broken = await step('dry-run');
  expect([broken.code === 0 || broken.code === 2, broken.changes]).toEqual([false, '']);
});
