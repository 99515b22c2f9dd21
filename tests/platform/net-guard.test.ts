import { afterAll, describe, expect, test } from 'bun:test';
import { checkUrl, guardedFetch } from '../../server/platform/net/guarded-fetch.ts';

const seen: { host: string | null; encoding: string | null; body: string }[] = [];
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { headers } = request;
    seen.push({ host: headers.get('host'), encoding: headers.get('accept-encoding'), body: await request.text() });
    const { pathname } = new URL(request.url);
    if (pathname === '/redirect') return Response.redirect('http://169.254.169.254/', 302);
    if (pathname === '/empty') return new Response(null, { status: 204 });
    if (pathname === '/stall') return new Promise(() => {});
    return Response.json({ answered: pathname }, { headers: { 'x-here': 'yes' } });
  },
});
afterAll(() => server.stop(true));
const at = `127.0.0.1:${server.port}`;
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'answered',
    (error: { code?: string; name?: string }) => error.code ?? error.name,
  );

describe('addresses that are not public', () => {
  test.each([
    'https://127.0.0.1/',
    'https://127.1/',
    'https://2130706433/',
    'https://0x7f.0.0.1/',
    'https://0177.0.0.1/',
    'https://１２７.0.0.1/',
    'https://10.1.2.3/',
    'https://172.16.0.1/',
    'https://192.168.1.1/',
    'https://169.254.169.254/',
    'https://100.64.0.1/',
    'https://0.0.0.0/',
    'https://224.0.0.1/',
    'https://[::1]/',
    'https://[::]/',
    'https://[fe80::1]/',
    'https://[fd00::1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://[64:ff9b::10.0.0.1]/',
    'https://[2002:7f00:1::]/',
    'https://localhost/',
  ])('are not called: %s', async (url) => {
    expect(await codeOf(guardedFetch({ allow: [] })(url))).toBe('address_not_allowed');
  });

  test.each([
    [at, true],
    [`127.0.0.0/8:${server.port}`, true],
    [`127.0.0.1:${server.port! + 1}`, false],
    [`10.0.0.0/8:${server.port}`, false],
    [`localhost:${server.port}`, false],
  ])('are called if the operator allows them: %s %p', async (entry, allowed) => {
    const outcome = await codeOf(guardedFetch({ allow: [entry] })(`http://${at}/`));
    expect(outcome).toBe(allowed ? 'answered' : 'unsupported_scheme');
  });

  test('may be allowed by host name', async () => {
    const answer = await guardedFetch({ allow: [`localhost:${server.port}`] })(`http://localhost:${server.port}/named`);
    expect(await answer.json()).toEqual({ answered: '/named' });
    expect(seen.at(-1)?.host).toBe(`localhost:${server.port}`);
  });
});

describe('other schemes and ports', () => {
  test.each([
    'file:///etc/hostname',
    'data:text/plain,x',
    'ftp://example.com/',
    's3://bucket/key',
    'gopher://example.com/',
  ])('are closed: %s', (url) => {
    expect(() => checkUrl(new URL(url), { allow: [], http: true })).toThrow('not allowed');
  });

  test('plain http is allowed only where intended', () => {
    expect(() => checkUrl(new URL('http://example.com/'), { allow: [] })).toThrow('plain http');
    expect(() => checkUrl(new URL('http://example.com/'), { allow: [], http: true })).not.toThrow();
  });

  test('a URL cannot contain user name and password', () => {
    expect(() => checkUrl(new URL('https://a:b@example.com/'), { allow: [] })).toThrow('user name');
  });

  test('an unknown host name has its own error', async () => {
    expect(await codeOf(guardedFetch({ allow: [] })('https://no-such-host.invalid/'))).toBe('host_not_found');
  });
});

describe('an allowed request', () => {
  const fetchHere = guardedFetch({ allow: [at] });

  test('is sent and answered completely', async () => {
    const answer = await fetchHere(`http://${at}/whole`, { method: 'POST', body: 'Zoë ☃', headers: { 'x-mine': '1' } });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-here')).toBe('yes');
    expect(await answer.json()).toEqual({ answered: '/whole' });
    expect(seen.at(-1)).toEqual({ host: at, encoding: 'identity', body: 'Zoë ☃' });
  });

  test('follows no redirect', async () => {
    expect((await fetchHere(`http://${at}/redirect`)).status).toBe(302);
  });

  test('may have no body', async () => {
    expect((await fetchHere(`http://${at}/empty`)).status).toBe(204);
  });

  test('uses no proxy', async () => {
    const before = process.env.HTTP_PROXY;
    process.env.HTTP_PROXY = 'http://127.0.0.1:1';
    try {
      expect((await fetchHere(`http://${at}/direct`)).status).toBe(200);
    } finally {
      if (before === undefined) delete process.env.HTTP_PROXY;
      else process.env.HTTP_PROXY = before;
    }
  });

  test('ends when it is aborted', async () => {
    const outcome = await codeOf(fetchHere(`http://${at}/stall`, { signal: AbortSignal.timeout(50) }));
    expect(outcome).not.toBe('answered');
  });
});
