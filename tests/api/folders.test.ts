import { describe, expect, test } from 'bun:test';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';

const service = await testDeps();
const api = testApi(service);
const make = makerOf(api.call);
const [source, destination] = [await make.source(), await make.destination()];
const inside = (folder: string | null) =>
  make.connection({ folder, source_id: source.id, destination_id: destination.id });
const folderOf = async ({ id }: { id: string }) => (await api.call('GET', `/connections/${id}`)).body;
const move = (from: string, to: string | null) => api.call('POST', '/connection_folders/move', { from, to });

describe('the folder of a connection', () => {
  test('201, 200: trimmed, in every response, changed with a revision and cleared by null', async () => {
    const connection = await inside(' Trimmed / Invoices ');
    expect(connection.folder).toBe('Trimmed/Invoices');
    const { body: summaries } = await api.call('GET', '/connection_summaries');
    expect(summaries.find(({ id }: { id: string }) => id === connection.id).folder).toBe('Trimmed/Invoices');
    const changed = await api.call('POST', `/connections/${connection.id}`, { folder: 'Other' });
    expect(changed.body).toMatchObject({ folder: 'Other', revision: connection.revision + 1 });
    expect((await api.call('POST', `/connections/${connection.id}`, { folder: null })).body.folder).toBeNull();
  });
  test.each(['', '/', 'a//b', '/a', 'a/', 'a/b/c/d/e', 'x'.repeat(201), ' / '])('422: %j', async (folder) => {
    const { id } = await inside(null);
    const answer = await api.call('POST', `/connections/${id}`, { folder });
    expect([answer.status, answer.body.detail[0].loc]).toEqual([422, ['body', 'folder']]);
  });
});

test('GET /connections 200: a folder and those below it, no folder with a longer name', async () => {
  const found = [await inside('Team'), await inside('Team/A'), await inside('Team/A/100%')];
  for (const other of ['Teams', 'Tea', 'team', 'X/Team']) await inside(other);
  const { body, headers } = await api.call('GET', '/connections?folder=Team');
  const ids = (list: { id: string }[]) => list.map(({ id }) => id).toSorted();
  expect(ids(body)).toEqual(ids(found));
  expect(headers.get('x-total-count')).toBe('3');
  expect((await api.call('GET', '/connections?folder=Team%2FA&limit=5')).body).toHaveLength(2);
  expect((await api.call('GET', '/connections?folder=T%25')).body).toEqual([]);
});

describe('POST /connection_folders/move', () => {
  test('200: all connections of it and below it, of this account alone', async () => {
    const [top, deep, beside] = [await inside('Old'), await inside('Old/A/B'), await inside('Older')];
    const other = await api.otherAccount();
    const theirs = makerOf(other.call);
    const foreign = await theirs.connection({ folder: 'Old' });
    expect(await move('Old', 'New/Place')).toMatchObject({ status: 200, body: { connections: 2 } });
    expect(await folderOf(top)).toMatchObject({ folder: 'New/Place', revision: top.revision + 1 });
    expect((await folderOf(deep)).folder).toBe('New/Place/A/B');
    expect((await folderOf(beside)).folder).toBe('Older');
    expect((await other.call('GET', `/connections/${foreign.id}`)).body.folder).toBe('Old');
  });
  test('200: emits connection_updated for each connection, with both folders', async () => {
    const [top, deep] = [await inside('Audited'), await inside('Audited/A')];
    await move('Audited', 'Seen');
    const { body } = await api.call('GET', '/automation/events?event=connection_updated&limit=2');
    const seen = body.map(({ connection_id, payload: { changed_fields, before, after } }: any) => [
      connection_id,
      changed_fields,
      before,
      after,
    ]);
    expect(seen).toContainEqual([top.id, ['folder'], { folder: 'Audited' }, { folder: 'Seen' }]);
    expect(seen).toContainEqual([deep.id, ['folder'], { folder: 'Audited/A' }, { folder: 'Seen/A' }]);
  });
  test('200: null removes the folder, and what is below it moves up', async () => {
    const [top, deep] = [await inside('Gone'), await inside('Gone/Below')];
    await move('Gone', null);
    expect([(await folderOf(top)).folder, (await folderOf(deep)).folder]).toEqual([null, 'Below']);
  });
  test('400 folder_too_deep moves nothing', async () => {
    const [top, deep] = [await inside('Deep'), await inside('Deep/1/2/3')];
    expect(await move('Deep', 'Very/Deep')).toMatchObject({ status: 400, body: { code: 'folder_too_deep' } });
    expect([(await folderOf(top)).folder, (await folderOf(deep)).folder]).toEqual(['Deep', 'Deep/1/2/3']);
  });
  test('404 without a connection in it; 403, 422', async () => {
    expect(await move('Nowhere', 'X')).toMatchObject({ status: 404, body: { detail: 'Folder not found' } });
    const viewer = api.as(await api.keyWith([]));
    expect((await viewer('POST', '/connection_folders/move', { from: 'a', to: 'b' })).status).toBe(403);
    expect((await move('a//b', 'c')).status).toBe(422);
  });
});
