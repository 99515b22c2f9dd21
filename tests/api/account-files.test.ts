import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { literal, openDuckDb } from '../../server/connectors/kits/duckdb/instance.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { uniqueName } from '../support/resources.ts';

const service = await testDeps();
const api = testApi(service);
const other = await api.otherAccount();
const { DATA_DIR } = service.deps.config;
const first = join(DATA_DIR, 'files');
const second = join(DATA_DIR, 'account-files', other.account_id);

const FILES: Record<string, { name: string; create(path: string): Promise<void> | void }> = {
  file: { name: 'rows.csv', create: (path) => writeFileSync(path, 'id\n1\n') },
  sqlite: {
    name: 'rows.db',
    create: (path) => {
      const database = new Database(path);
      database.run('create table rows (id integer primary key)');
      database.close();
    },
  },
  duckdb: {
    name: 'rows.duckdb',
    create: async (path) => {
      const duck = await openDuckDb();
      await duck.connection.run(`ATTACH ${literal(path)} AS made; CREATE TABLE made.rows (id int); DETACH made`);
      duck.close();
    },
  },
};

const create = async (call: typeof api.call, connector_name: string, path: string, connector_type = 'source') =>
  (
    await call('POST', '/account_connectors', {
      name: uniqueName(connector_name),
      connector_type,
      connector_name,
      parameters: { path },
    })
  ).body;

describe.each(Object.entries(FILES))('%s', (connector, { name, create: createFile }) => {
  test('reads the files of its own account, and no others', async () => {
    mkdirSync(first, { recursive: true });
    await createFile(join(first, name));
    expect((await create(api.call, connector, name)).status).toBe('active');
    expect(await create(other.call, connector, name)).toMatchObject({
      status: 'broken',
      status_reason: 'file_not_found',
    });
    mkdirSync(second, { recursive: true });
    await createFile(join(second, `own-${name}`));
    expect((await create(other.call, connector, `own-${name}`)).status).toBe('active');
    expect((await create(api.call, connector, `own-${name}`)).status_reason).toBe('file_not_found');
  });

  test('is not led out of its folder by .. or a link', async () => {
    mkdirSync(second, { recursive: true });
    symlinkSync(join(first, name), join(second, `link-${name}`));
    symlinkSync(first, join(second, `folder-${connector}`));
    for (const path of [`../../files/${name}`, `link-${name}`, `folder-${connector}/${name}`, join(first, name)]) {
      expect([path, (await create(other.call, connector, path)).status_reason]).toEqual([path, 'path_outside_root']);
    }
  });
});

test.each([
  ['file', 'out/of-second'],
  ['duckdb', 'of-second.duckdb'],
])('a destination %s writes to the folder of its account', async (connector, path) => {
  mkdirSync(first, { recursive: true });
  const before = readdirSync(first).toSorted();
  expect((await create(other.call, connector, path, 'destination')).status).toBe('active');
  expect(readdirSync(first).toSorted()).toEqual(before);
});

test('a link to a missing file is not a missing file: DuckDB would create what it leads to', async () => {
  mkdirSync(dirname(join(second, 'x')), { recursive: true });
  symlinkSync(join(first, 'planted.duckdb'), join(second, 'dangling.duckdb'));
  expect((await create(other.call, 'duckdb', 'dangling.duckdb', 'destination')).status_reason).toBe(
    'path_outside_root',
  );
});
