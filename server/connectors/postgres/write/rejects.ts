import type { Cell } from '../../contract/connector.ts';
import type { DataError } from '../../contract/errors.ts';
import { type Copied, REJECTED_TABLE, type RejectCount, Rejects } from '../../kits/sql/rejects.ts';
import type { PgSession } from '../connection/session.ts';
import { relation } from '../connection/sql.ts';
import type { Target } from './target.ts';

/** Call it in a transaction that holds `lockDefinitions`. */
export async function ensureRejectedTable(session: PgSession, schema: string): Promise<void> {
  const table = relation(schema, REJECTED_TABLE);
  const { rows } = await session.query('select to_regclass($1)', [table]);
  if (rows[0]?.[0] != null) return;
  await session.query(
    `create table ${table} (
       connection_id text not null, connection_run_id text not null, stream_run_id text not null,
       table_name text not null, reason text not null, "row" jsonb not null,
       rejected_at timestamptz not null default now())`,
  );
  await session.query(`create index on ${table} (connection_run_id)`);
}

interface Loading {
  /** Loads rows in the open transaction. */
  copy(rows: Cell[][]): Promise<Copied>;
  present?(row: readonly Cell[]): Promise<void>;
}

export function rejectsOf(
  { session, target, rejected }: { session: PgSession; target: Target; rejected: RejectCount },
  { copy, present }: Loading,
): Rejects {
  const { schema, table, connection_id, connection_run_id, stream_run_id } = target;
  const into = {
    session,
    load: copy,
    present,
    rowOf: lineOf,
    reasonOf: ({ message }: DataError) => message.replace(/\(row \d+, /, '(').replace(/ \(row \d+\)$/, ''),
    async keep(content: string, reason: string) {
      await session.query(
        `insert into ${relation(schema, REJECTED_TABLE)}
           (connection_id, connection_run_id, stream_run_id, table_name, reason, "row")
         values ($1, $2, $3, $4, $5, $6)`,
        // JSON in PostgreSQL has no NUL either.
        [connection_id, connection_run_id, stream_run_id, table, reason, withoutNul(content)],
      );
    },
  };
  return new Rejects(rejected, into, target);
}

/** Of `\\u0000` in JSON only what no other backslash escapes is a NUL. */
const withoutNul = (json: string) => json.replace(/\\(u0000|.)/g, (found, what) => (what === 'u0000' ? '' : found));

/** From 0; null: the error names none. */
function lineOf(error: unknown): number | null {
  const [, line] = /^COPY [^\n]*?, line (\d+)/.exec((error as { where?: string })?.where ?? '') ?? [];
  return line === undefined ? null : Number(line) - 1;
}
