import type { Cell } from '../../contract/connector.ts';
import type { DataError } from '../../contract/errors.ts';
import { type Copied, insertRejected, type RejectCount, REJECTED_TABLE, Rejects } from '../../kits/sql/rejects.ts';
import type { PgSession } from '../connection/session.ts';
import { relation } from '../connection/sql.ts';
import { postgres } from './dialect.ts';
import type { PgTarget } from './target.ts';

interface Loading {
  /** Loads rows in the open transaction. */
  copy(rows: Cell[][]): Promise<Copied>;
  present?(row: readonly Cell[]): Promise<void>;
}

export function rejectsOf(
  { session, target, rejected }: { session: PgSession; target: PgTarget; rejected: RejectCount },
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
      // As parameters: the network log does not show them. PostgreSQL's JSON has no NUL.
      const values = [connection_id, connection_run_id, stream_run_id, table, reason, withoutNul(content)];
      const places = values.map((_, index) => `$${index + 1}`);
      await session.query(insertRejected(postgres, relation(schema, REJECTED_TABLE), places), { values });
    },
  };
  return new Rejects(rejected, into, target);
}

/** In JSON, `\u0000` is a NUL unless another backslash escapes it. */
const withoutNul = (json: string) => json.replace(/\\(u0000|.)/g, (found, what) => (what === 'u0000' ? '' : found));

/** From 0; null: the error names no line. */
function lineOf(error: unknown): number | null {
  const [, line] = /^COPY [^\n]*?, line (\d+)/.exec((error as { where?: string })?.where ?? '') ?? [];
  return line === undefined ? null : Number(line) - 1;
}
