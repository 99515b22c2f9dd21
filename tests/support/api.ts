import { eq } from 'drizzle-orm';
import { accounts, apiKeys, roles, userRoles, users } from '../../db/schema/index.ts';
import { createApp } from '../../server/http/app.ts';
import type { Permission } from '../../server/api/permissions.ts';
import { makeApiKey } from '../../server/platform/api-keys.ts';
import type { TestDeps } from './database.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every shape
type Json = any;

export interface Answer {
  status: number;
  headers: Headers;
  body: Json;
}

export type Call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>;

/** The real app, called without a socket, with a caller per key. */
export interface TestApi {
  /** As the first administrator. */
  call: Call;
  /** Without a key. */
  anonymous: Call;
  as(key: string): Call;
  /** The raw response, for bodies that are not JSON. */
  raw(path: string, key?: string): Promise<Response>;
  /** The key of a new user with exactly these permissions, in the first account or in another one. */
  keyWith(permissions: Permission[], where?: { account_id: string }): Promise<string>;
  /** A second account with an administrator. */
  otherAccount(): Promise<{ account_id: string; call: Call }>;
}

export function testApi(test: TestDeps): TestApi {
  const { deps } = test;
  const app = createApp(deps);
  const send = (
    method: string,
    path: string,
    options: { key?: string; body?: unknown; headers?: Record<string, string> },
  ) =>
    app.handle(
      new Request(`http://localhost${path}`, {
        method,
        headers: {
          ...(options.key !== undefined && { authorization: `Bearer ${options.key}` }),
          ...(options.body !== undefined && { 'content-type': 'application/json' }),
          ...options.headers,
        },
        body: options.body === undefined ? undefined : JSON.stringify(options.body),
      }),
    );
  const as =
    (key?: string): Call =>
    async (method, path, body, headers) => {
      const answer = await send(method, path, { key, body, headers });
      const text = await answer.text();
      const isFile = answer.headers.get('content-type')?.startsWith('application/x-ndjson');
      const parsed = text === '' ? null : isFile ? text : JSON.parse(text);
      return { status: answer.status, headers: answer.headers, body: parsed };
    };
  const keyWith = (permissions: Permission[], where = { account_id: test.account_id }) =>
    makeUser(test, { permissions, ...where });
  return {
    call: as(test.api_key),
    anonymous: as(),
    as,
    raw: async (path, key = test.api_key) => send('GET', path, { key }),
    keyWith,
    otherAccount: async () => {
      const [account] = await deps.db.insert(accounts).values({ name: 'Other' }).returning();
      if (!account) throw new Error('no account was made');
      const [administrator] = await deps.db.select().from(roles).where(eq(roles.name, 'Administrator'));
      const permissions = (administrator?.permissions ?? []) as Permission[];
      return { account_id: account.id, call: as(await keyWith(permissions, { account_id: account.id })) };
    },
  };
}

async function makeUser(test: TestDeps, who: { account_id: string; permissions: Permission[] }): Promise<string> {
  const { db, secrets } = test.deps;
  const { account_id, permissions } = who;
  const mark = Bun.randomUUIDv7();
  const [role] = await db
    .insert(roles)
    .values({ account_id, name: `role ${mark}`, permissions })
    .returning();
  const [user] = await db
    .insert(users)
    .values({ account_id, email: `${mark}@example.test`, full_name: `User ${mark}`, status: 'active' })
    .returning();
  if (!role || !user) throw new Error('no user was made');
  await db.insert(userRoles).values({ user_id: user.id, role_id: role.id });
  const key = makeApiKey();
  await db.insert(apiKeys).values({
    account_id,
    user_id: user.id,
    prefix: key.slice(0, 8),
    hash: secrets.hmac('api_key', key),
    expires_at: new Date(Date.now() + 86_400_000).toISOString(),
  });
  return key;
}
