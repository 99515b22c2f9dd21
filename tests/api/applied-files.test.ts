import { describe, expect, test } from 'bun:test';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';

const service = await testDeps();
const { call, otherAccount } = testApi(service);
const source = await makerOf(call).source();

const items = [{ kind: 'source', id: source.id, name: source.name, settings: { parameters: { rows: null } } }];
const record = (body: object) => call('POST', '/automation/applied_files', { file: 'a.yaml', ...body });
const files = async () => (await call('GET', '/automation/applied_files')).body;

describe('applied files', () => {
  test('POST /automation/applied_files 200: again for the same file and owner replaces it; 404; GET /automation/applied_files 200', async () => {
    expect(await record({ items })).toMatchObject({ status: 200, body: { items: 1, owner: null, differences: [] } });
    expect((await record({ items, prune: true })).body.prune).toBe(true);
    await record({ items, owner: 'shop-team' });
    expect((await files()).map(({ owner }: { owner: string | null }) => owner)).toEqual([null, 'shop-team']);
    expect((await record({ items: [{ ...items[0], id: crypto.randomUUID() }] })).status).toBe(404);
    expect((await record({ items: [] })).status).toBe(422);
    const other = await otherAccount();
    expect((await other.call('GET', '/automation/applied_files')).body).toEqual([]);
    expect((await other.call('POST', '/automation/applied_files', { file: 'a.yaml', items })).status).toBe(404);
  });
  test('POST /automation/applied_files/{applied_file_id}/compare 200, 404', async () => {
    const [{ id }] = await files();
    await call('POST', `/account_connectors/${source.id}`, { parameters: { rows: 7 } });
    const compared = await call('POST', `/automation/applied_files/${id}/compare`);
    const expected = `update source "${source.name}": parameters`;
    expect([compared.status, compared.body.differences[0]]).toEqual([200, expected]);
    expect((await call('POST', '/automation/applied_files/none/compare')).status).toBe(404);
  });
  test('DELETE /automation/applied_files/{applied_file_id} 204, 404', async () => {
    const [{ id }] = await files();
    expect((await call('DELETE', `/automation/applied_files/${id}`)).status).toBe(204);
    expect((await call('DELETE', `/automation/applied_files/${id}`)).status).toBe(404);
    expect((await call('GET', '/automation/events?event=configuration_matched')).body).toHaveLength(1);
  });
});
