import { createServer, type Socket } from 'node:net';
import { expect, test } from 'bun:test';
import {
  AuthenticationError,
  ConfigurationError,
  type ConnectorError,
  RetryableError,
  TimeoutError,
} from '../../server/connectors/contract/errors.ts';
import { blackHole } from '../support/black-hole.ts';

/** Invalid settings of a database connector. */
export interface Wrong {
  host?: string;
  port?: number;
  database?: string;
  username?: string;
  password?: string;
  connect_timeout_seconds?: number;
}

export interface Reaching {
  /** The connector's check with valid settings, except these. */
  check(wrong: Wrong): Promise<unknown>;
  /** One statement in a run. */
  run(wrong: Wrong): Promise<unknown>;
  /** A running check, and the controller that aborts it. */
  stoppable(wrong: Wrong): { checking: Promise<unknown>; abort: AbortController };
  accepts(settings: object): boolean;
}

export const errorOf = (work: Promise<unknown>) =>
  work.then(
    () => {
      throw new Error('it did not fail');
    },
    (error: unknown) => error as ConnectorError,
  );

/** A port that handles connections with `answer` while `work` runs. */
export async function withListener<Result>(
  answer: (socket: Socket) => void,
  work: (port: number) => Promise<Result>,
): Promise<Result> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket.on('error', () => {}));
    answer(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await work((server.address() as { port: number }).port);
  } finally {
    server.close();
    for (const socket of open) socket.destroy();
  }
}

/** A closed loopback port. */
export const closedPort = () =>
  withListener(
    () => {},
    async (port) => port,
  );

/** How every database connector fails to connect: within the timeout, with the right class and code. */
export function testUnreachable({ check, run, stoppable, accepts }: Reaching): void {
  test.each<[string, Wrong, new (...args: never[]) => Error, string]>([
    ['password', { password: 'wrong-p4ssword' }, AuthenticationError, 'password_wrong'],
    ['user', { username: 'nobody-of-that-name' }, AuthenticationError, 'password_wrong'],
    ['database', { database: 'no such database' }, ConfigurationError, 'database_not_found'],
    ['host', { host: 'nowhere.invalid' }, ConfigurationError, 'host_not_found'],
    ['host, that is never called,', { host: '169.254.169.254' }, ConfigurationError, 'address_not_allowed'],
  ])('a wrong %s has its own class and code', async (_, wrong, type, code) => {
    const error = await errorOf(check(wrong));
    expect(error).toBeInstanceOf(type);
    expect(error.code).toBe(code);
    expect(error.message).not.toContain('wrong-p4ssword');
  });

  test('a closed port is a configuration error in a check and retryable in a run', async () => {
    const port = await closedPort();
    const error = await errorOf(check({ port }));
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error.code).toBe('connection_refused');
    expect(error.message).toContain(`127.0.0.1:${port}`);
    expect(await errorOf(run({ port }))).toBeInstanceOf(RetryableError);
  });

  test('a server that accepts and stays silent is a timeout; one that hangs up, a lost connection', async () => {
    const error = await withListener(
      () => {},
      (port) => errorOf(check({ port, connect_timeout_seconds: 1 })),
    );
    expect(error).toBeInstanceOf(TimeoutError);
    expect(error.code).toBe('connection_timeout');
    const lost = await withListener(
      (socket) => socket.destroy(),
      (port) => errorOf(check({ port })),
    );
    expect(lost).toBeInstanceOf(RetryableError);
    expect(lost.code).toBe('connection_lost');
  });

  test('a server with another protocol is an error within the timeout', async () => {
    const error = await withListener(
      (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
      (port) => errorOf(check({ port, connect_timeout_seconds: 2 })),
    );
    expect(error.type).toBeDefined();
    expect(error.message).toContain('127.0.0.1');
  });

  test('a host that drops every packet is a timeout', async () => {
    const { port, stop } = await blackHole();
    const begun = performance.now();
    const error = await errorOf(check({ port, connect_timeout_seconds: 1 }));
    stop();
    expect(error).toBeInstanceOf(TimeoutError);
    expect(error.code).toBe('connection_timeout');
    expect(performance.now() - begun).toBeLessThan(3000);
  });

  test('a stop ends a hanging connection attempt', async () => {
    await withListener(
      () => {},
      async (port) => {
        const { checking, abort } = stoppable({ port });
        const reason = new Error('stop');
        const failed = errorOf(checking);
        abort.abort(reason);
        expect(await failed).toBe(reason as never);
      },
    );
  });

  test('a host cannot be the path of a local socket', () => {
    expect(accepts({ host: 'db', database: 'd', username: 'u' })).toBeTrue();
    for (const host of ['/tmp', '/var/run/s.sock', 'C:\\pipe', 'u@db', 'a b', '']) {
      expect(accepts({ host, database: 'd', username: 'u' })).toBeFalse();
    }
  });
}
