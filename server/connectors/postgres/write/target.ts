import type { ByteFormat } from '../../contract/connector.ts';
import type { ExistingTable, Target } from '../../kits/sql/target.ts';
import { columnType, DIALECT, isBuiltin } from '../connection/types.ts';

export interface PgTable extends ExistingTable {
  oid: string;
  /** Of pg_class: `r` table, `p` partitioned table. */
  kind: string;
}

export type PgTarget = Target<PgTable>;

/** The binary format has no room for conversions: each column must have exactly the type of what arrives. */
export const acceptedFormats = (target: PgTarget): ByteFormat[] =>
  target.columns.every((_, at) => isMaskedText(target, at) || hasTypeOfSource(target, at))
    ? ['pgcopy-binary', 'pgcopy-text']
    : ['pgcopy-text'];

const isMaskedText = ({ columns, typed }: PgTarget, at: number): boolean =>
  columns[at]!.masked === true && typed[at]!.type === 'text';

function hasTypeOfSource({ columns, typed }: PgTarget, at: number): boolean {
  const { dialect, source_type, from } = columns[at]!;
  const { type } = typed[at]!;
  if (from !== undefined) return false;
  if (source_type === null || dialect !== DIALECT) return type === columnType(columns[at]!);
  return isBuiltin(source_type) && type === source_type;
}
