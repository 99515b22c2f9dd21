import type { ByteFormat, WriteTarget } from '../define.ts';
import { ConfigurationError } from '../errors.ts';
import { checkedName, relation } from './sql.ts';
import type { ExistingTable } from './tables.ts';
import { columnType, DIALECT, isBuiltin } from './types.ts';

export interface Column {
  name: string;
  /** As it is, or will be, in the table that takes the copied rows. */
  type: string;
}

/** A WriteTarget whose names PostgreSQL can hold, and what it means in the database as it stands. */
export interface Target extends WriteTarget {
  schema: string;
  /** Quoted. */
  relation: string;
  typed: Column[];
  existing: ExistingTable | null;
}

/** @throws ConfigurationError for what no PostgreSQL could do. */
export function checkTarget(target: WriteTarget, schema: string): void {
  checkedName('schema', schema);
  checkedName('table', target.table);
  const names = target.columns.map(({ name }) => checkedName('column', name));
  if (names.length === 0) throw new ConfigurationError('no_fields', 'No field is selected');
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice) throw new ConfigurationError('duplicate_column', `Two fields would become the column "${twice}"`);
  if (!['append', 'overwrite', 'append_dedup'].includes(target.mode)) {
    throw new ConfigurationError('unsupported_sync_mode', `PostgreSQL does not write by ${target.mode}`);
  }
  if (target.mode === 'append_dedup' && target.primary_key.length === 0) {
    throw new ConfigurationError('primary_key_required', `${target.table} needs a primary key for append_dedup`);
  }
}

/** Overwrite makes a table anew; the other modes take the columns as they are. */
export function resolveTarget(target: WriteTarget, schema: string, existing: ExistingTable | null): Target {
  const kept = target.mode === 'overwrite' ? null : existing;
  const typed = target.columns.map((column) => ({
    name: column.name,
    type: kept?.types.get(column.name) ?? columnType(column),
  }));
  return { ...target, schema, existing, typed, relation: relation(schema, target.table) };
}

/** Binary has no room for conversions: each column must have the very type that the source has. */
export function acceptedFormats({ columns, typed }: Target): ByteFormat[] {
  const same = columns.every(
    ({ dialect, source_type }, index) =>
      dialect === DIALECT && source_type !== null && isBuiltin(source_type) && typed[index]!.type === source_type,
  );
  return same ? ['pgcopy-binary', 'pgcopy-text'] : ['pgcopy-text'];
}
