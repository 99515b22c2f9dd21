import type { Call } from './api.ts';

/** Connection settings of the `postgres` connectors for a database. */
export function postgresParameters(url: string): Record<string, unknown> {
  const { hostname, port, username, password, pathname } = new URL(url);
  return {
    host: hostname,
    port: Number(port),
    database: pathname.slice(1),
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
    ssl_mode: 'disable',
  };
}

let counter = 0;
export const uniqueName = (what: string) => `${what} ${++counter}`;

/** Creates resources over the API. A failure throws here, not in the test. */
export function makerOf(call: Call) {
  const made = async (path: string, body: object) => {
    const answer = await call('POST', path, body);
    if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const connector = (connector_type: string, connector_name: string, parameters: object = {}) =>
    made('/account_connectors', { name: uniqueName(connector_name), connector_type, connector_name, parameters });
  const source = (parameters: object = {}) => connector('source', 'sample', parameters);
  const destination = (parameters: object = {}) => connector('destination', 'sample', parameters);
  return {
    connector,
    source,
    destination,
    /** A connection from sample to sample by default. */
    connection: async (body: Record<string, unknown> = {}) =>
      made('/connections', {
        name: uniqueName('connection'),
        source_id: body.source_id ?? (await source()).id,
        destination_id: body.destination_id ?? (await destination()).id,
        ...body,
      }),
  };
}
