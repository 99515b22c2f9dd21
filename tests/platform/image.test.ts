import { afterAll, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import sharp from 'sharp';
import { createApiClient } from '../../client/api.ts';
import { packageFiles, unusedBy, unusedRules } from '../../server/deploy/unused-files.ts';
import { CONSOLE_BUILD } from '../../server/http/console/build.ts';
import { manifestOf, streamOf } from '../connectors/manifest-support.ts';
import { commandLine } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { json, startHttpServer } from '../support/http-server.ts';
import { importedFiles } from '../support/imported-files.ts';
import { temporaryFolder } from '../support/postgres.ts';
import { isThorough } from '../support/thorough.ts';
import { until } from '../support/until.ts';

const ROOT = resolve(import.meta.dir, '../..');
const PACKAGES = join(ROOT, 'node_modules');
const DEPLOY = join(ROOT, 'server/deploy');
/** As registries store it. */
const MAX_BYTES = 150_000_000;

const inPackages = (files: Iterable<string>) =>
  [...files].filter((file) => file.startsWith(`${PACKAGES}/`)).map((file) => file.slice(PACKAGES.length + 1));

describe('files of packages that the image leaves out', () => {
  const unused = (files: Iterable<string>) =>
    inPackages(files).flatMap((path) => {
      const rule = unusedBy(path);
      return rule === null ? [] : [`${path} is left out by: ${rule}`];
    });

  test('are none that the service and the command line may load', () => {
    const sources = [...new Bun.Glob('{server,db,client}/**/*.ts').scanSync({ cwd: ROOT })];
    const programs = sources.filter((path) => !/^(client\/(console|package)|server\/deploy)\//.test(path));
    const loaded = importedFiles(programs.map((path) => join(ROOT, path)));
    // Among them modules of modules.
    expect(inPackages(loaded)).toContain('pg-protocol/dist/parser.js');
    expect(unused(loaded)).toEqual([]);
  });

  test('are none of the console', async () => {
    const { metafile } = await Bun.build({ ...CONSOLE_BUILD, metafile: true });
    const bundled = Object.keys(metafile!.inputs).map((path) => resolve(path));
    expect(inPackages(bundled)).toContain('react-dom/client.js');
    expect(unused(bundled)).toEqual([]);
  });

  test('exist for every rule, and no license is among them', () => {
    const files = packageFiles(PACKAGES);
    const used = new Set(files.map(unusedBy));
    expect(unusedRules().filter((rule) => !used.has(rule))).toEqual([]);
    const licenses = files.filter((path) => /(^|\/)(licen[sc]e|notice|copying)[^/]*$/i.test(path));
    const kept = ['drizzle-orm', 'react', 'pyodide', 'zod'].flatMap((name) =>
      licenses.filter((path) => path.startsWith(`${name}/`) && unusedBy(path) !== null),
    );
    expect(kept).toEqual([]);
  });
});

const COMPONENTS = `
from airbyte_cdk.sources.declarative.transformations import RecordTransformation

class Doubled(RecordTransformation):
    def transform(self, record, **_):
        record["twice"] = record["id"] * 2
`;

/** The files of the image, and the service that they start. It reaches the test by the loopback interface only. */
async function startImage(settings: string[]) {
  const rootfs = join(temporaryFolder(), 'rootfs');
  const script = (name: string, ...given: string[]) =>
    Bun.spawn([join(DEPLOY, name), ...given], { stdout: 'pipe', stderr: 'inherit' });
  expect(await script('image.sh', '--rootfs', rootfs).exited).toBe(0);
  const bytes = Number(await new Response(script('image.sh', '--size', rootfs).stdout).text());
  const port = await freePort();
  const child = script('try-image.sh', '--serve', rootfs, String(port), ...settings);
  afterAll(() => child.kill('SIGTERM'));
  let said = '';
  for await (const part of child.stdout) {
    said += new TextDecoder().decode(part);
    if (said.includes('ready after')) break;
  }
  expect(said).toMatch(/ready after \d+ ms/);
  return { bytes, rootfs, child, url: `http://127.0.0.1:${port}` };
}

// It builds for a minute.
if (isThorough) {
  test('the image has at most 150 MB, and does everything as a user without rights on a read-only root', async () => {
    const remote = startHttpServer();
    afterAll(() => remote.close());
    remote.on('/items', json([{ id: 1 }, { id: 2 }, { id: 3 }]));
    const key = `trial-${crypto.randomUUID()}`;
    const { bytes, rootfs, child, url } = await startImage([
      `BOOTSTRAP_API_KEY=${key}`,
      `EGRESS_ALLOW=${new URL(remote.url).host}`,
      'DEMO=1',
    ]);
    console.log(`the image has ${(bytes / 1e6).toFixed(1)} MB compressed`);
    expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
    expect(existsSync(join(rootfs, 'app/node_modules/typescript'))).toBeFalse();
    const api = createApiClient(url, key);

    /** Creates a connection, runs it once and gives the rows that it loaded. */
    const load = async (source: Side, destination: Side) => {
      const [from, to] = await Promise.all([connect(api, 'source', source), connect(api, 'destination', destination)]);
      const given = { name: `${source.name} to ${destination.name}`, source_id: from, destination_id: to };
      return await runOnce(api, (await api.connections.create.mutate(given)).id);
    };

    // The embedded PostgreSQL: 200,000 events, half as many orders, a tenth of users.
    const demo = async () => (await api.connections.list.query({}))[0];
    await until(async () => (await demo()) !== undefined);
    expect(await runOf(api, (await demo())!.id)).toMatchObject({ status: 'succeeded', rows_loaded: 320_000 });

    const shop = { name: 'demo', parameters: { rows: 1000 } };
    const parquet = { name: 'file', parameters: { path: 'out', format: 'parquet' } };
    expect(await load(shop, parquet)).toMatchObject({ status: 'succeeded', rows_loaded: 1600 });
    const files = { name: 'file', parameters: { path: 'out/**/events/*.parquet' } };
    const duckdb = { name: 'duckdb', parameters: { path: 'shop.duckdb' } };
    expect(await load(files, duckdb)).toMatchObject({ status: 'succeeded', rows_loaded: 1000 });

    // Python, in its sandbox.
    const stream = streamOf('items', {
      url: remote.url,
      transformations: [{ type: 'CustomTransformation', class_name: 'components.Doubled' }],
      properties: { id: { type: 'integer' }, twice: { type: 'integer' } },
    });
    const parameters = { manifest: JSON.stringify(manifestOf([stream])), components: COMPONENTS };
    const lines = { name: 'file', parameters: { path: 'python', format: 'jsonl' } };
    expect(await load({ name: 'airbyte_manifest', parameters }, lines)).toMatchObject({
      status: 'succeeded',
      rows_loaded: 3,
    });

    const picture = await sharp({ create: { width: 600, height: 300, channels: 3, background: 'red' } })
      .jpeg()
      .toBuffer();
    const form = new FormData();
    form.set('file', new File([new Uint8Array(picture)], 'me.jpg'));
    const headers = { authorization: `Bearer ${key}` };
    const avatar = await fetch(`${url}/users/me/avatar`, { method: 'POST', headers, body: form });
    expect([avatar.status, await avatar.json()]).toMatchObject([200, { width: 256, height: 256 }]);

    const program = join(temporaryFolder(), 'data-pipelines');
    expect(await Bun.write(program, await fetch(`${url}/cli`))).toBeGreaterThan(100_000);
    const cli = commandLine({ url, key }, [process.execPath, program]);
    const listed = await cli.run(['connections', 'list', '-o', 'name']);
    expect(listed.out.trim().split('\n')).toHaveLength(4);

    for (const page of ['/', '/docs', '/docs/api', '/openapi.json', '/metrics']) {
      const answer = await fetch(`${url}${page}`);
      expect([page, answer.status]).toEqual([page, 200]);
      for (const [, path] of (await answer.text()).matchAll(/(?:src|href)="(\/(?:docs\/)?assets\/[^"]+)"/g))
        expect([path, (await fetch(`${url}${path}`)).status]).toEqual([path, 200]);
    }

    child.kill('SIGTERM');
    expect(await child.exited).toBe(0);
  }, 600_000);
}

type Api = ReturnType<typeof createApiClient>;
interface Side {
  name: string;
  parameters: Record<string, unknown>;
}

let connectors = 0;

async function connect(
  api: Api,
  connector_type: 'source' | 'destination',
  { name, parameters }: Side,
): Promise<string> {
  connectors += 1;
  const made = await api.account_connectors.create.mutate({
    name: `${name} ${connectors}`,
    connector_type,
    connector_name: name,
    parameters,
  });
  // A busy machine may exceed the limit of a test in which Python starts for the first time; any other failure is one.
  if (made.status_reason === 'check_timeout')
    await until(
      async () => {
        const tested = api.account_connectors.login.mutate({ account_connector_id: made.id });
        return (await tested.catch((error: Error) => error.message)) === 'active';
      },
      { timeout_ms: 300_000 },
    );
  else expect(made).toMatchObject({ status: 'active' });
  if (connector_type === 'source')
    await until(async () => {
      const read = { connector_type, account_connector_id: made.id };
      const { catalog_status } = await api.account_connectors.get.query(read);
      expect(catalog_status).not.toBe('failed');
      return catalog_status === 'ready';
    });
  return made.id;
}

async function runOnce(api: Api, connection_id: string) {
  await api.runs.run.mutate({ connection_id });
  return await runOf(api, connection_id);
}

/** The newest run of a connection, once it has ended. */
async function runOf(api: Api, connection_id: string) {
  const newest = async () => (await api.runs.list.query({ connection_id, limit: 1 }))[0];
  await until(async () => (await newest())?.finished_at != null, { timeout_ms: 300_000 });
  return await newest();
}
