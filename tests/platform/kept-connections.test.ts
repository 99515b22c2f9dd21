import { afterAll, expect, test } from 'bun:test';
import { guardedFetch } from '../../server/platform/net/guarded-fetch.ts';
import { selfSigned } from '../support/certificates.ts';
import { until } from '../support/until.ts';

const ports: number[] = [];
const answer = (request: Request, port: number | undefined) => {
  ports.push(port ?? 0);
  return new URL(request.url).pathname === '/close'
    ? new Response('x', { headers: { connection: 'close' } })
    : new Response('x'.repeat(20_000));
};
const serve = (idleTimeout: number) =>
  Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout,
    fetch: (request, self) => answer(request, self.requestIP(request)?.port),
  });
const server = serve(255);
// For one test alone: on a busy machine a request can meet a connection that such a server closes at that moment.
const impatient = serve(1);
afterAll(async () => {
  await server.stop(true);
  await impatient.stop(true);
});
const url = server.url.href;
const rules = { allow: [server.url.host, impatient.url.host], http: true };
const get = async (fetched: ReturnType<typeof guardedFetch>, path = '', base = url) =>
  (await fetched(base + path)).text();

test('sequential requests share one connection, concurrent ones use as many as needed', async () => {
  const kept = guardedFetch(rules, { keepAlive: true });
  for (let turn = 0; turn < 20; turn++) await get(kept);
  expect(new Set(ports.splice(0)).size).toBe(1);
  await Promise.all(Array.from({ length: 5 }, () => get(kept)));
  for (let turn = 0; turn < 20; turn++) await get(kept);
  expect(new Set(ports.splice(0)).size).toBeLessThanOrEqual(6);
  const alone = guardedFetch(rules);
  for (let turn = 0; turn < 5; turn++) await get(alone);
  expect(new Set(ports.splice(0)).size).toBe(5);
});

test('a connection that the server closed, at once or for being idle, is not used again', async () => {
  const kept = guardedFetch(rules, { keepAlive: true });
  for (let turn = 0; turn < 5; turn++) expect(await get(kept, 'close')).toBe('x');
  expect(new Set(ports.splice(0)).size).toBe(5);
  await get(kept, '', impatient.url.href);
  const begun = performance.now();
  // Bun closes it after a second or two.
  await until(() => performance.now() - begun > 3000, { timeout_ms: 10_000 });
  expect((await get(kept, '', impatient.url.href)).length).toBe(20_000);
});

test('an unread body does not block other requests', async () => {
  const kept = guardedFetch(rules, { keepAlive: true });
  for (let turn = 0; turn < 5; turn++) {
    const response = await kept(url);
    await response.body?.cancel();
  }
  expect((await get(kept)).length).toBe(20_000);
});

test('a certificate is valid for its own name only, even if the address has an open connection', async () => {
  const { key, cert } = selfSigned('DNS:localhost');
  const secure = Bun.serve({ port: 0, hostname: '127.0.0.1', tls: { key, cert }, fetch: () => new Response('hello') });
  const program = `
    import { guardedFetch } from ${JSON.stringify(new URL('../../server/platform/net/guarded-fetch.ts', import.meta.url).pathname)};
    const kept = guardedFetch({ allow: ['localhost:${secure.port}', '127.0.0.1:${secure.port}'] }, { keepAlive: true });
    for (const name of ['localhost', 'localhost', '127.0.0.1', 'localhost']) {
      const url = \`https://\${name}:${secure.port}/\`;
      console.log(name, await kept(url).then((response) => response.text(), (error) => String(error.code)));
    }
    process.exit(0);`;
  try {
    const path = `/tmp/kept-connections-${process.pid}.pem`;
    await Bun.write(path, cert);
    const child = Bun.spawn([process.execPath, '-e', program], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: path },
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const lines = (await new Response(child.stdout).text()).trim().split('\n');
    expect(lines).toEqual([
      'localhost hello',
      'localhost hello',
      '127.0.0.1 ERR_TLS_CERT_ALTNAME_INVALID',
      'localhost hello',
    ]);
  } finally {
    await secure.stop(true);
  }
});
