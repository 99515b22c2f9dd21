import { afterAll, expect, test } from 'bun:test';
import { createApp } from '../../server/http/app.ts';
import { testApi } from '../support/api.ts';
import { commandLine } from '../support/cli.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';

const service = await testDeps();
const api = testApi(service);
const make = makerOf(api.call);
const app = createApp(service.deps).listen({ hostname: '127.0.0.1', port: 0 });
afterAll(() => app.server?.stop(true));
const cli = commandLine({ url: `http://127.0.0.1:${app.server!.port}`, key: service.api_key });

test('views are saved, listed, overwritten, filter the connections and are deleted', async () => {
  const tagged = await make.connection({ tags: ['sales'] });
  const other = await make.connection();
  const saved = await cli.run(['views', 'save', 'Sales', '--query', 'tag=sales&sort=name', '--json']);
  expect(JSON.parse(saved.out)).toMatchObject({ page: 'connections', query: 'tag=sales&sort=name', is_shared: false });
  const listed = await cli.run(['connections', 'list', '--view', 'sales', '-o', 'name']);
  expect(listed.out.trim()).toBe(tagged.name);

  const again = ['views', 'save', 'Sales', '--query', 'state=pending'];
  expect(await cli.run(again)).toMatchObject({ code: 1, err: expect.stringContaining('duplicate_name') });
  expect((await cli.run([...again, '--overwrite'])).code).toBe(0);
  const pending = await cli.run(['connections', 'list', '--view', 'Sales', '-o', 'name']);
  expect(pending.out).toContain(other.name);
  expect((await cli.run(['connections', 'list', '--view', 'None'])).code).toBe(4);
  expect((await cli.run(['views', 'save', 'Sales'])).code).toBe(2);

  await cli.run([...again, '--share']);
  const views = JSON.parse((await cli.run(['views', 'list', '--json'])).out);
  expect(views).toMatchObject([{ is_shared: false }, { is_shared: true }]);
  expect((await cli.run(['views', 'list'])).out).toContain('state=pending');
  expect(await cli.run(['views', 'delete', 'Sales', '-y'])).toMatchObject({
    code: 2,
    err: expect.stringContaining('Pass the id'),
  });
  for (const { id } of views) expect((await cli.run(['views', 'delete', id, '-y'])).code).toBe(0);
  expect((await cli.run(['views', 'list'])).out.trim()).toBe('No saved views yet');
}, 60_000);

test('connections are created in folders, moved, listed by them and kept in files', async () => {
  const { name } = await make.connection();
  const show = ['--jq', '.folder'];
  const moved = await cli.run(['connections', 'update', name, '--folder', 'Finance/Invoices', ...show]);
  expect(moved.out.trim()).toBe('Finance/Invoices');
  const listed = await cli.run(['connections', 'list', '--folder', 'Finance', '-o', 'name']);
  expect(listed.out.trim()).toBe(name);
  expect((await cli.run(['connections', 'list', '--folder', 'Fin'])).out.trim()).toBe('No connections match');
  const { out: file } = await cli.run(['export']);
  expect(Bun.YAML.parse(file)).toMatchObject({ connections: { [name]: { folder: 'Finance/Invoices' } } });
  await Bun.write(`${cli.folder}/pipelines.yaml`, file.replace('folder: Finance/Invoices', 'folder: Finance'));
  expect((await cli.run(['apply', '-f', 'pipelines.yaml', '--yes'])).out).toContain('"Finance/Invoices" → "Finance"');
  const cleared = await cli.run(['connections', 'update', name, '--folder', '', ...show]);
  expect(cleared.out.trim()).toBe('null');
}, 60_000);
