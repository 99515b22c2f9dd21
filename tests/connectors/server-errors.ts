import { expect, test } from 'bun:test';
import {
  ConfigurationError,
  type ConnectorError,
  RetryableError,
  SchemaChangedError,
  TimeoutError,
} from '../../server/connectors/contract/errors.ts';
import type { Entry, TestContext } from './postgres-support.ts';
import { errorOf } from './unreachable.ts';

type ErrorCase = [what: string, sql: string, type: new (...args: never[]) => Error, code: string];

export interface Serving {
  /** A context with valid settings, except these. */
  context(more: { username?: string; password?: string; statement_timeout_seconds?: number }): TestContext<never>;
  /** One statement in a run. */
  query(ctx: TestContext<never>['ctx'], sql: string): Promise<unknown>;
  /** A user who may not read the table `secret`, which has no column `absent`. */
  limited: { username: string; password: string };
  /** Statements: one that takes half a minute, one that ends its own connection. */
  sleeping: string;
  ending: string;
  connectorError(error: unknown, place: { server: string; phase: 'run' }): unknown;
  /** Further statements that the server rejects, with the expected error. */
  own: ErrorCase[];
}

const SAME: ErrorCase[] = [
  ['a missing table', 'select * from absent', SchemaChangedError, 'table_missing'],
  ['a missing column', 'select absent from secret', SchemaChangedError, 'column_missing'],
  ['a syntax error', 'selec', ConfigurationError, 'statement_refused'],
];

/** How every database connector classifies errors of its server. */
export function testServerErrors({ context, query, limited, sleeping, ending, connectorError, own }: Serving): void {
  const failing = (sql: string, more = {}): Promise<ConnectorError> => errorOf(query(context(more).ctx, sql));

  test.each<ErrorCase>([...SAME, ['a lost connection', ending, RetryableError, 'connection_lost'], ...own])(
    '%s',
    async (_, sql, type, code) => {
      const error = await failing(sql);
      expect(error).toBeInstanceOf(type);
      expect(error.code).toBe(code);
    },
  );

  test('a missing permission', async () => {
    const error = await failing('select * from secret', limited);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error.code).toBe('permission_denied');
  });

  test('a statement that exceeds its timeout', async () => {
    const error = await failing(sleeping, { statement_timeout_seconds: 1 });
    expect(error).toBeInstanceOf(TimeoutError);
    expect(error.code).toBe('statement_timeout');
  });

  test('a failed statement is recorded with its code', async () => {
    const { ctx, entries } = context({});
    await errorOf(query(ctx, 'select * from absent'));
    expect(entries.at(-1) as Entry).toMatchObject({
      method: 'QUERY',
      body: 'select * from absent',
      code: 'table_missing',
    });
  });

  test('an unknown error is unchanged', () => {
    const bug = new TypeError('x is not a function');
    expect(connectorError(bug, { server: 'host:1', phase: 'run' })).toBe(bug);
  });
}
