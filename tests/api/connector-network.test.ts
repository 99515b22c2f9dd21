import { afterAll, describe, expect, test } from 'bun:test';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { postgresParameters, uniqueName } from '../support/resources.ts';

const service = await testDeps();
const warehouse = await createPlainDatabase();
const { host } = new URL(warehouse.url);
const closed = await testDeps({ config: { CONNECTOR_NETWORK: 'public_only' } });
const opened = await testDeps({ config: { CONNECTOR_NETWORK: 'public_only', EGRESS_ALLOW: [host] } });
afterAll(() => warehouse.drop());

const making = (api: ReturnType<typeof testApi>) => async (connector_name: string, parameters: object) => {
  const body = { name: uniqueName(connector_name), connector_type: 'destination', connector_name, parameters };
  const created = await api.call('POST', '/account_connectors', body);
  expect(created.status).toBe(201);
  return created.body;
};
const make = making(testApi(service));
const refused = { status: 'broken', status_reason: 'address_not_allowed' };

describe('the control database', () => {
  const own = postgresParameters(service.url);

  test.each(['127.0.0.1', 'localhost', 'LOCALHOST.', '127.1', '2130706433', '0x7f.0.0.1', '127.0.0.2'])(
    'cannot be a destination, as %s',
    async (spelled) => {
      const created = await make('postgres', { ...own, host: spelled });
      expect(created).toMatchObject(refused);
      expect(created.status_message).toContain('is the database of this service');
    },
  );

  test('cannot be the destination of another connector on its port either', async () => {
    const { port, database, username, password } = own as Record<string, string>;
    expect(await make('mysql', { host: '127.0.0.1', port, database, username, password })).toMatchObject(refused);
  });

  test('leaves the other databases of its server usable', async () => {
    expect(await make('postgres', postgresParameters(warehouse.url))).toMatchObject({ status: 'active' });
  });

  test('is not reached through a default of the driver', async () => {
    const absent = await make('postgres', { ...own, database: `${own.database as string} ` });
    expect(absent).toMatchObject({ status: 'broken', status_reason: 'database_not_found' });
  });
});

test('a metadata service is never reached, by name or address', async () => {
  for (const there of ['169.254.169.254', '2852039166', 'metadata.google.internal', '100.100.100.200']) {
    const created = await make('postgres', { ...postgresParameters(warehouse.url), host: there });
    expect(created).toMatchObject(refused);
  }
});

describe('CONNECTOR_NETWORK=public_only', () => {
  test('refuses private addresses with a message', async () => {
    const created = await making(testApi(closed))('postgres', postgresParameters(warehouse.url));
    expect(created).toMatchObject(refused);
    expect(created.status_message).toContain(`${host} is not a public address`);
  });

  test('allows those in EGRESS_ALLOW', async () => {
    const created = await making(testApi(opened))('postgres', postgresParameters(warehouse.url));
    expect(created).toMatchObject({ status: 'active' });
  });
});
