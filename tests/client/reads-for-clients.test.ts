import { describe, expect, test } from 'bun:test';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';
import { rpc, rpcQuery } from '../support/rpc.ts';

const service = await testDeps();
const api = testApi(service);
const make = makerOf(api.call);
const other = await api.otherAccount();
const viewer = api.as(await api.keyWith(['destinations.update']));
const UNKNOWN = '01900000-0000-7000-8000-000000000000';

describe('account_connectors.differingParameters', () => {
  const differing = async (account_connector_id: string, parameters: object, call = api.call) =>
    rpc(call, 'account_connectors.differingParameters', { account_connector_id, parameters });

  test('names what an update would change, secrets included, and changes nothing', async () => {
    const { id } = await make.source({ rows: 5, token: 'first' });
    expect((await differing(id, { rows: 5, token: 'first' })).result).toEqual([]);
    expect((await differing(id, { rows: 6, token: 'second' })).result).toEqual(['rows', 'token']);
    expect((await differing(id, { token: '**********' })).result).toEqual([]);
    expect((await differing(id, { token: null })).result).toEqual(['token']);
    expect((await differing(id, { batch_rows: 10 })).result).toEqual([]);
    const source = (await api.call('GET', `/account_connectors/source/${id}`)).body;
    expect(source).toMatchObject({ revision: 1, parameters: { rows: 5 } });
  });

  test('403 without permission to update, 404 from other accounts, 400 for what an update would reject', async () => {
    const { id } = await make.source();
    expect(await differing(id, { rows: 1 }, viewer)).toMatchObject({
      status: 403,
      error: { code: 'permission_denied' },
    });
    expect(await differing(id, { rows: 1 }, other.call)).toMatchObject({ status: 404 });
    expect(await differing(UNKNOWN, {})).toMatchObject({ status: 404 });
    expect(await differing(id, { rows: -1 })).toMatchObject({ status: 400, error: { parameter: 'rows' } });
    expect(await differing(id, { nothing: 1 })).toMatchObject({ status: 400 });
  });
});

describe('runs.get', () => {
  test('returns a run and its streams by run ID; 404 from another account', async () => {
    const { id } = await make.connection();
    const { body: connection_run_id } = await api.call('POST', `/connections/${id}/run`);
    const { result } = await rpcQuery(viewer, 'runs.get', { connection_run_id });
    const [run] = (await api.call('GET', `/connections/${id}/runs`)).body;
    const streams = (await api.call('GET', `/connections/${id}/runs/${connection_run_id}/stream_runs`)).body;
    expect(result).toEqual({ run, stream_runs: streams, log_lines: 0 });
    expect(await rpcQuery(other.call, 'runs.get', { connection_run_id })).toMatchObject({ status: 404 });
  });
});
