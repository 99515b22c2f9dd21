import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import sharp from 'sharp';
import { createApp } from '../../server/http/app.ts';
import { customRunPlans } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { type Json, type Operation, readContract } from './document.ts';
import { makeWorld } from './world.ts';

const contract = readContract();
const service = await testDeps();
const { db } = service.deps;
const app = createApp(service.deps);
const { call } = testApi(service);

/** tests/api/additions.test.ts sends those of additions. */
const inInterface = contract.operations.filter(({ told }) => !told['x-addition']);
const examples = inInterface.flatMap((operation) =>
  Object.values<Json>(operation.told.requestBody?.content ?? {}).flatMap((media) =>
    Object.entries<Json>(media.examples ?? {}).map(([name, { value }]) => ({ operation, name, value })),
  ),
);
const named = (key: string) => examples.find(({ value }) => key in value)?.value[key] as string;

/** The account in which the ids of the examples belong to real objects. */
const world = await makeWorld(service, {
  account_id: service.account_id,
  call,
  source_id: named('source_id'),
  destination_id: named('destination_id'),
});
await db
  .update(customRunPlans)
  .set({ id: named('plan_id') })
  .where(eq(customRunPlans.id, world.plan_id![0]!));

async function bodyOf(operation: Operation, value: Json): Promise<string | FormData> {
  if (!operation.told.requestBody.content['multipart/form-data']) return JSON.stringify(value);
  const form = new FormData();
  const image = await sharp({ create: { width: 8, height: 8, channels: 3, background: 'teal' } })
    .png()
    .toBuffer();
  for (const [part, name] of Object.entries<string>(value)) form.append(part, new File([new Uint8Array(image)], name));
  return form;
}

describe('examples of the document', () => {
  test('exist for every body', () => {
    const told = new Set(examples.map(({ operation }) => operation.name));
    expect(inInterface.filter((one) => one.told.requestBody && !told.has(one.name))).toEqual([]);
  });

  test.each(examples.map((one) => [one.operation.name, one.name, one] as const))(
    '%s, %s, succeeds as documented',
    async (_operation, _name, { operation, value }) => {
      // No run is active, so none is a reason to refuse. Examples of launches share their connection; every other one
      // gets a new object.
      const own = 'plan_id' in value ? world : await makeWorld(service, { account_id: service.account_id, call });
      await call('POST', `/connections/${own.connection_run_id![1]}/stop`);
      const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => own[name]![0]!);
      const body = await bodyOf(operation, value);
      const headers = {
        authorization: `Bearer ${service.api_key}`,
        ...(typeof body === 'string' && { 'content-type': 'application/json' }),
      };
      const response = await app.handle(
        new Request(`http://localhost${path}`, { method: operation.method, headers, body }),
      );
      const answer = { status: response.status, headers: response.headers, text: await response.text() };
      expect([answer.status, answer.text.slice(0, 300)]).toEqual([successOf(operation), expect.any(String)]);
      expect(contract.problemsOf(operation, answer)).toEqual([]);
    },
  );
});

const successOf = ({ told }: Operation) => Number(Object.keys(told.responses).find((status) => status.startsWith('2')));
