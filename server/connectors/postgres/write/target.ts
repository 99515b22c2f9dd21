import type { ByteFormat } from '../../contract/connector.ts';
import type { ExistingTable, Target } from '../../kits/sql/target.ts';
import { DIALECT, isBuiltin } from '../connection/types.ts';

export interface PgTable extends ExistingTable {
  oid: string;
  /** Of pg_class: `r` table, `p` partitioned table. */
  kind: string;
}

export type PgTarget = Target<PgTable>;

/** The binary format has no room for conversions: each column must have exactly the type of the source. */
export function acceptedFormats({ columns, typed }: PgTarget): ByteFormat[] {
  const same = columns.every(
    ({ dialect, source_type }, index) =>
      dialect === DIALECT && source_type !== null && isBuiltin(source_type) && typed[index]!.type === source_type,
  );
  return same ? ['pgcopy-binary', 'pgcopy-text'] : ['pgcopy-text'];
}
