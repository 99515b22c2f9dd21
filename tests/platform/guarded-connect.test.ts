import { createServer, type Server } from 'node:net';
import { afterAll, describe, expect, test } from 'bun:test';
import { guardedConnect } from '../../server/platform/net/guarded-connect.ts';
import { guardedFetch } from '../../server/platform/net/guarded-fetch.ts';
import { checkedAddresses, type EgressRules, type Place } from '../../server/platform/net/egress-rules.ts';

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});

/** Sends a greeting to each connection, and counts them. */
async function greeter(): Promise<{ port: number; seen: () => number }> {
  let seen = 0;
  const server = createServer((socket) => {
    seen += 1;
    socket.end('hello');
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as { port: number }).port, seen: () => seen };
}

const { port, seen } = await greeter();
const options = (more: object = {}) => ({ timeout_ms: 5000, signal: new AbortController().signal, ...more });
const ANY: EgressRules = { allow: [], internal: true };
const connect = (place: Partial<Place>, rules: EgressRules = ANY, more: object = {}) =>
  guardedConnect({ host: '127.0.0.1', port, ...place }, rules, options(more)).then((socket) => {
    const { remoteAddress } = socket;
    socket.destroy();
    return remoteAddress;
  });
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'connected',
    (error: { code?: string; message?: string }) => error.code ?? error.message,
  );
/** A resolver that returns one answer after the other. */
const answering = (...answers: string[][]) => {
  let asked = 0;
  const lookup = async () =>
    answers[Math.min(asked++, answers.length - 1)]!.map((address) => ({
      address,
      family: address.includes(':') ? 6 : 4,
    }));
  return { lookup, asked: () => asked };
};

describe('a connection', () => {
  test.each([
    '127.0.0.1',
    'localhost',
    'LOCALHOST.',
    '127.1',
    '2130706433',
    '0x7f.1',
    '017700000001',
    '[::ffff:127.0.0.1]',
  ])('uses the checked address: %s', async (host) => {
    expect(await connect({ host })).toBe('127.0.0.1');
  });

  test('uses it even if the name resolves to another address later', async () => {
    const { lookup, asked } = answering(['127.0.0.1'], ['169.254.169.254']);
    expect(await connect({ host: 'rebinding.test' }, { ...ANY, lookup })).toBe('127.0.0.1');
    expect(asked()).toBe(1);
    expect(await codeOf(connect({ host: 'rebinding.test' }, { ...ANY, lookup }))).toBe('address_not_allowed');
  });

  test('an HTTP request does, too', async () => {
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: (request) => new Response(request.headers.get('host')),
    });
    const { lookup, asked } = answering(['127.0.0.1'], ['169.254.169.254']);
    const fetchThere = guardedFetch({ allow: [`127.0.0.0/8:${server.port}`], http: true, lookup });
    const url = `http://rebinding.test:${server.port}/`;
    expect(await (await fetchThere(url)).text()).toBe(`rebinding.test:${server.port}`);
    expect(asked()).toBe(1);
    expect(await codeOf(fetchThere(url))).toBe('address_not_allowed');
    await server.stop(true);
  });

  test('is not opened to a name with an allowed and a blocked address', async () => {
    const before = seen();
    const { lookup } = answering(['127.0.0.1', '169.254.169.254']);
    expect(await codeOf(connect({ host: 'both.test' }, { ...ANY, lookup }))).toBe('address_not_allowed');
    expect(seen()).toBe(before);
  });

  test('tries the next address if one does not answer', async () => {
    const { lookup } = answering(['127.0.0.2', '127.0.0.1']);
    expect(await connect({ host: 'two.test' }, { ...ANY, lookup })).toBe('127.0.0.1');
    const refused = answering(['127.0.0.2', '127.0.0.3']);
    expect(await codeOf(connect({ host: 'none.test' }, { ...ANY, lookup: refused.lookup }))).toBe('ECONNREFUSED');
  });

  test('has one timeout for resolving and connecting, and ends with its signal', async () => {
    const never = () => new Promise<never>(() => {});
    expect(await codeOf(connect({ host: 'slow.test' }, { ...ANY, lookup: never }, { timeout_ms: 30 }))).toBe(
      'ETIMEDOUT',
    );
    const abort = new AbortController();
    const reason = Object.assign(new Error('stop'), { code: 'stopped' });
    const waiting = codeOf(connect({ host: 'slow.test' }, { ...ANY, lookup: never }, { signal: abort.signal }));
    abort.abort(reason);
    expect(await waiting).toBe('stopped');
    expect(await codeOf(connect({}, ANY, { signal: abort.signal }))).toBe('stopped');
  });

  test("an unknown host name reports the resolver's error", async () => {
    expect(await codeOf(connect({ host: 'no-such-host.invalid' }))).toBe('ENOTFOUND');
    expect(await codeOf(connect({ host: 'empty.test' }, { ...ANY, lookup: async () => [] }))).toBe('ENOTFOUND');
  });
});

describe('always blocked', () => {
  test.each([
    '169.254.169.254',
    '2852039166',
    '0xa9fea9fe',
    '0251.0376.0251.0376',
    '169.254.43518',
    '[::ffff:169.254.169.254]',
    '[64:ff9b::a9fe:a9fe]',
    '[fd00:ec2::254]',
    '[fe80::1]',
    '0.0.0.0',
    '0',
    '[::]',
    '224.0.0.1',
    '100.100.100.200',
    'metadata.google.internal',
    'Metadata.Google.Internal.',
  ])('%s, even if the operator allows it', async (host) => {
    const plain = host.replaceAll(/[[\]]/g, '');
    const rules = { allow: [`${plain}:${port}`, `0.0.0.0/0:${port}`, `::/0:${port}`], internal: true };
    expect(await codeOf(connect({ host }, rules))).toBe('address_not_allowed');
  });
});

describe('public addresses only', () => {
  test.each(['127.0.0.1', 'localhost', '10.0.0.1', '192.168.1.1', '172.16.0.1', '100.64.0.1', '[::1]', '[fd00::1]'])(
    'rejects %s',
    async (host) => {
      expect(await codeOf(checkedAddresses({ host, port }, { allow: [] }))).toBe('address_not_allowed');
    },
  );

  test('except what the operator allows, at that port', async () => {
    const rules = { allow: [`127.0.0.0/8:${port}`, 'db.test:5432'] };
    expect(await connect({}, rules)).toBe('127.0.0.1');
    expect(await codeOf(connect({ port: port + 1 }, rules))).toBe('address_not_allowed');
    const { lookup } = answering(['10.0.0.1']);
    expect(await codeOf(checkedAddresses({ host: 'db.test', port: 5432 }, { ...rules, lookup }))).toBe('connected');
    expect(await codeOf(checkedAddresses({ host: 'db.test', port: 5433 }, { ...rules, lookup }))).toBe(
      'address_not_allowed',
    );
    expect(await codeOf(checkedAddresses({ host: '8.8.8.8', port: 5432 }, rules))).toBe('connected');
  });
});

describe('the control database', () => {
  const control = `postgres://service:secret@localhost:${port}/pipelines`;

  test.each(['127.0.0.1', 'localhost', '127.8.8.8', '[::1]', '0x7f000001', '[::ffff:127.0.0.1]'])(
    'is not called as %s',
    async (host) => {
      const rules = { ...ANY, control };
      expect(await codeOf(connect({ host, database: 'pipelines' }, rules))).toBe('address_not_allowed');
      expect(await codeOf(connect({ host }, rules))).toBe('address_not_allowed');
      expect(await codeOf(checkedAddresses({ host, port, database: 'warehouse' }, rules))).toBe('connected');
      expect(await codeOf(checkedAddresses({ host, port: port + 1 }, rules))).toBe('connected');
    },
  );

  test('is not called by the address of a local interface, or by a name for it', async () => {
    const { networkInterfaces } = await import('node:os');
    const own = Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? []);
    const candidates = own.filter((address) => !/^(fe80|169\.254)/i.test(address));
    expect(candidates.length).toBeGreaterThan(0);
    for (const host of candidates) {
      expect([host, await codeOf(connect({ host }, { ...ANY, control }))]).toEqual([host, 'address_not_allowed']);
    }
    const lookup = async (host: string) => [{ address: host === 'db.test' ? '10.1.1.1' : '127.0.0.1', family: 4 }];
    const rules = { ...ANY, lookup };
    expect(await codeOf(connect({ host: 'alias.test' }, { ...rules, control }))).toBe('address_not_allowed');
    const elsewhere = { ...rules, control: `postgres://u:p@db.test:${port}/pipelines` };
    expect(await codeOf(connect({ host: '10.1.1.1' }, elsewhere))).toBe('address_not_allowed');
    expect(await codeOf(connect({ host: 'alias.test' }, elsewhere))).toBe('connected');
  });

  test("defaults to the standard port and the user's name", async () => {
    const rules = { ...ANY, control: 'postgres://service@localhost' };
    const at = (database: string) => codeOf(checkedAddresses({ host: '127.0.0.1', port: 5432, database }, rules));
    expect(await at('service')).toBe('address_not_allowed');
    expect(await at('other')).toBe('connected');
  });
});
