import type { ByteFormat, WriteTarget } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { DELETED_AT } from '../../contract/changes.ts';
import { checkedName, relation } from '../connection/sql.ts';
import type { ExistingTable } from './tables.ts';
import { columnType, DIALECT, isBuiltin } from '../connection/types.ts';

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
  if (!['append', 'overwrite'].includes(target.mode) && target.primary_key.length === 0) {
    throw new ConfigurationError('primary_key_required', `${target.table} needs a primary key for ${target.mode}`);
  }
  if (target.mode === 'soft_delete' && names.includes(DELETED_AT)) {
    throw new ConfigurationError(
      'duplicate_column',
      `The column ${DELETED_AT} is where soft_delete marks rows: give the field of this name another one`,
    );
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
