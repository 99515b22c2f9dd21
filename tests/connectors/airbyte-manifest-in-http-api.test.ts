import { afterAll, expect, test } from 'bun:test';
import { httpApiSource } from '../../server/connectors/http-api/source.ts';
import type { AnySource } from '../../server/connectors/contract/connector.ts';
import { parseParameters } from '../../server/connectors/contract/parameters.ts';
import { json, startHttpServer } from '../support/http-server.ts';
import { contextOf } from './fixtures.ts';
import { manifestOf, streamOf } from './manifest-support.ts';
import { readBatches, requestOf } from './reading.ts';

const server = startHttpServer();
afterAll(() => server.close());
const source = httpApiSource as AnySource;

const definition = JSON.stringify(
  manifestOf(
    [
      streamOf('items', {
        url: server.url,
        properties: { id: { type: 'integer' } },
        requester: { authenticator: { type: 'BearerAuthenticator', api_token: '{{ config.a.token }}' } },
      }),
    ],
    {
      spec: {
        connection_specification: {
          required: ['since'],
          properties: { a: { properties: { token: { airbyte_secret: true } } } },
        },
      },
    },
  ),
);

test('http_api runs the same document', async () => {
  server.on('/items', ({ headers }) =>
    headers.authorization === 'Bearer s' ? Response.json([{ id: 1 }]) : Response.json({}, { status: 401 }),
  );
  const settings = { definition, config: { since: '2026' }, secrets: { a: { token: 's' } } };
  const context = contextOf(httpApiSource, { filesRoot: '/nowhere' }, { settings });
  expect((await source.check(context)).checks[1]?.title).toBe('First page of items');
  const [stream] = await source.discover(context);
  if (!stream) throw new Error('no stream');
  const batches = await readBatches(source, context, requestOf(stream));
  expect(batches.flatMap(({ rows }) => rows)).toEqual([['1']]);
});

test('and refuses it as the other does', async () => {
  const said = (settings: object) => {
    const parsed = parseParameters(source, { definition, ...settings });
    return 'problems' in parsed ? parsed.problems.map(({ message }) => message) : [];
  };
  expect(said({ config: { since: '2026', a: { token: 's' } } })).toEqual([
    '"a.token" is a secret: it belongs into "secrets", in the same place',
  ]);
  expect(said({ config: {} })).toEqual(['"since" is missing']);
  expect(said({ definition: 'type: DeclarativeSource\nstreams: 5' })[0]).toContain('no manifest');
  server.on('/items', json([]));
});
