import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { z } from 'zod';
import { LOGICAL_TYPES, type StreamSchema } from '../../server/connectors/contract/connector.ts';
import { ConnectorError } from '../../server/connectors/contract/errors.ts';
import { describeParameters, secretNames } from '../../server/connectors/contract/parameters.ts';
import { allConnectors, findConnector } from '../../server/connectors/registry.ts';
import { limitHangs } from '../support/hangs.ts';
import { spread } from '../support/thorough.ts';
import { until } from '../support/until.ts';
import { FIXTURES } from './fixtures.ts';
import { CANONICAL, firstDifference, readBatches, requestOf } from './reading.ts';
import { contextOf, type Place } from './places.ts';

limitHangs();

const SECRET_NAME = /password|secret|token|private_key|api_key/;

for (const connector of allConnectors()) {
  const key = `${connector.type} ${connector.name}`;
  describe(key, () => {
    test('is described for the catalog: every setting has a label, every secret is marked', () => {
      expect(findConnector(connector.type as 'source', connector.name)).toBe(connector as never);
      expect(connector.name).toMatch(/^[a-z][a-z0-9_]*$/);
      expect(connector.version).toMatch(/^\d+\.\d+\.\d+$/);
      for (const parameter of describeParameters(connector)) {
        expect(parameter.label).not.toBe(parameter.name);
        if (SECRET_NAME.test(parameter.name)) expect(secretNames(connector.config)).toContain(parameter.name);
        if (parameter.secret) expect(parameter.default ?? '').toBe('');
      }
      expect(z.toJSONSchema(connector.config, { io: 'input', unrepresentable: 'any' })).toBeObject();
    });

    test('has a fixture', () => expect(Object.keys(FIXTURES)).toContain(key));
  });

  for (const [variant, make] of Object.entries(FIXTURES[key] ?? {})) {
    describe(`${key}, ${variant}`, () => {
      let place: Place;
      beforeAll(async () => {
        place = await make();
      });
      afterAll(() => place?.close());

      test('the check passes with settings that work', async () => {
        const { checks } = await connector.check(contextOf(connector, place));
        expect(checks.length).toBeGreaterThan(0);
        expect(checks.filter(({ status }) => status === 'failed')).toEqual([]);
        await until(async () => (await place.leftOpen()) === 0);
      });

      test('the check rejects settings that do not work with a ConnectorError', async () => {
        expect(Object.keys(place.bad)).not.toEqual([]);
        for (const [what, settings] of Object.entries(place.bad)) {
          const error = await connector.check(contextOf(connector, place, { settings })).then(
            ({ checks }) => (checks.some(({ status }) => status === 'failed') ? null : `${what} passed`),
            (reason: unknown) => (reason instanceof ConnectorError ? null : reason),
          );
          expect(error).toBeNull();
        }
        await until(async () => (await place.leftOpen()) === 0);
      });

      if (connector.type === 'source') {
        test('discovers consistent streams', async () => {
          const streams = await connector.discover(contextOf(connector, place));
          expect(streams.length).toBeGreaterThan(0);
          expect(new Set(streams.map(({ namespace, name }) => `${namespace}.${name}`)).size).toBe(streams.length);
          for (const stream of streams) {
            const paths = stream.fields.map(({ path }) => path.join('.'));
            expect(new Set(paths).size).toBe(paths.length);
            for (const { type } of stream.fields) expect(LOGICAL_TYPES).toContain(type);
            for (const mode of stream.supported_sync_modes) expect(connector.supported_sync_modes).toContain(mode);
            for (const path of stream.source_defined_primary_key ?? []) expect(paths).toContain(path.join('.'));
            if (stream.default_cursor_field) expect(paths).toContain(stream.default_cursor_field.join('.'));
          }
        });

        test('returns cells in the requested order and in the canonical form of their types', async () => {
          const context = contextOf(connector, place);
          for (const stream of await connector.discover(context)) {
            const columns = stream.fields.toReversed().map((field) => ({ field, masking: 'none' as const }));
            const batches = await readBatches(connector, context, requestOf(stream, { columns }));
            expect(batches.flatMap(({ rows }) => rows).length).toBeGreaterThan(0);
            const wrong = batches.flatMap(({ rows }) =>
              rows.filter(
                (row) =>
                  row.length !== columns.length ||
                  row.some((cell, at) => cell !== null && !CANONICAL[columns[at]?.field.type ?? 'string'].test(cell)),
              ),
            );
            expect(wrong.slice(0, 3)).toEqual([]);
          }
        });

        test('an aborted read ends and leaves nothing open', async () => {
          const stream = (await connector.discover(contextOf(connector, place))).at(-1) as StreamSchema;
          const all = await readBatches(connector, contextOf(connector, place), requestOf(stream));
          const abort = new AbortController();
          const context = contextOf(connector, place, { signal: abort.signal });
          const iterator = connector.read(context, requestOf(stream))[Symbol.asyncIterator]();
          let rows = (await iterator.next()).value?.rows.length ?? 0;
          abort.abort(new Error('stopped'));
          const drain = async (): Promise<string> => {
            for (let next = await iterator.next(); !next.done; next = await iterator.next())
              rows += next.value.rows.length;
            return 'whole';
          };
          const end = await drain().catch(() => 'thrown');
          if (end === 'whole') expect(rows).toBe(all.reduce((sum, batch) => sum + batch.rows.length, 0));
          await until(async () => (await place.leftOpen()) === 0);
        });

        test('a read whose loop is left leaves nothing open', async () => {
          const context = contextOf(connector, place);
          const [stream] = await connector.discover(context);
          for await (const batch of connector.read(context, requestOf(stream as StreamSchema))) {
            expect(batch.rows.length).toBeGreaterThan(0);
            break;
          }
          await until(async () => (await place.leftOpen()) === 0);
        });

        for (const sync_mode of connector.supported_sync_modes) {
          test(`a ${sync_mode} read resumes from the state of any batch with exactly the rest`, async () => {
            const context = contextOf(connector, place);
            const streams = await connector.discover(context);
            const stream = streams.find((one) => one.supported_sync_modes.includes(sync_mode));
            if (!stream) throw new Error(`No stream has the mode ${sync_mode}`);
            const field = stream.fields.find(({ is_cursor_candidate }) => is_cursor_candidate)?.path ?? null;
            const cursor_field = stream.default_cursor_field ?? (stream.source_defined_cursor ? null : field);
            const request = requestOf(stream, { sync_mode, cursor_field });
            const batches = await readBatches(connector, context, request);
            const rows = batches.flatMap((batch) => batch.rows);
            let before = 0;
            const moments = batches.map(({ state, rows: own }) => ({ state, before: (before += own.length) }));
            const resumable = moments.filter(({ state }) => state);
            for (const moment of spread(resumable, 4)) {
              const state = JSON.parse(JSON.stringify(moment.state));
              const rest = await readBatches(connector, context, { ...request, state });
              const found = rest.flatMap((one) => one.rows);
              expect(firstDifference(found, rows.slice(moment.before))).toBeNull();
            }
            if (sync_mode === 'incremental') expect(resumable.length).toBeGreaterThan(0);
          });
        }
      }
    });
  }
}
