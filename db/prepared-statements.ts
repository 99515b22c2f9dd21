import type { Sql, TransactionSql } from 'postgres';

type Unsafe = (text: string, values?: never[], options?: { prepare?: boolean }) => unknown;
type Begin = (...parameters: unknown[]) => Promise<unknown>;

/**
 * Limits on the prepared statements of a connection. The first ones stay, since the server keeps what was prepared. A
 * longer text usually contains a list and rarely repeats.
 */
const MAX_STATEMENTS = 400;
const MAX_LENGTH = 12_000;

/**
 * Wraps a client so that it prepares every statement it sees a second time. drizzle prepares only statements with
 * `.prepare()`, and for all others postgres.js first asks the server for the parameter types, which is another round trip.
 * The request that creates a pipeline connection, with 12 statements, takes 0.6 of the time this way.
 */
export function preparing<Client extends Sql>(client: Client): Client {
  const seen = new Set<string>();
  const repeated = (text: string) => {
    if (seen.has(text)) return true;
    if (seen.size < MAX_STATEMENTS && text.length <= MAX_LENGTH) seen.add(text);
    return false;
  };
  const wrapped = <Inner extends Sql | TransactionSql>(inner: Inner): Inner => {
    const send = inner.unsafe as Unsafe;
    const unsafe: Unsafe = (text, values, options) =>
      send.call(inner, text, values, {
        ...options,
        prepare: options?.prepare === true || ((values?.length ?? 0) > 0 && repeated(text)),
      });
    return new Proxy(inner, {
      get(target, name, receiver) {
        if (name === 'unsafe') return unsafe;
        const value: unknown = Reflect.get(target, name, receiver);
        if (name === 'begin' || name === 'savepoint') {
          return (...parameters: unknown[]) => {
            const work = parameters.pop() as (sql: TransactionSql) => unknown;
            return (value as Begin).call(target, ...parameters, (sql: TransactionSql) => work(wrapped(sql)));
          };
        }
        return value;
      },
    });
  };
  return wrapped(client);
}
