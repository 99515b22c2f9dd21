import type { WriteTarget } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { DELETED_AT } from '../../contract/changes.ts';
import { type Shape, shapeOf } from '../connection/cell-shapes.ts';
import { columnTypes } from './column-types.ts';
import type { ServerVersion } from '../connection/server-version.ts';
import { checkedName, relation } from '../connection/sql.ts';
import type { ExistingTable } from './tables.ts';

export interface Column {
  name: string;
  /** As it is, or will be, in the table that takes the rows. */
  type: string;
  shape: Shape;
}

/** A WriteTarget whose names the server can hold, and what it means in the database as it stands. */
export interface Target extends WriteTarget {
  schema: string;
  /** Quoted. */
  relation: string;
  typed: Column[];
  existing: ExistingTable | null;
  version: ServerVersion;
}

/** @throws ConfigurationError for what no MySQL could do. */
export function checkTarget(target: WriteTarget, schema: string): void {
  checkedName('database', schema);
  checkedName('table', target.table);
  const names = target.columns.map(({ name }) => checkedName('column', name).toLowerCase());
  if (names.length === 0) throw new ConfigurationError('no_fields', 'No field is selected');
  const twice = target.columns.find(({ name }, index) => names.indexOf(name.toLowerCase()) !== index);
  if (twice) {
    // Names of columns differ by more than upper and lower case here.
    throw new ConfigurationError('duplicate_column', `Two fields would become the column "${twice.name}"`);
  }
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
export function resolveTarget(
  target: WriteTarget & { schema: string },
  existing: ExistingTable | null,
  version: ServerVersion,
): Target {
  const kept = target.mode === 'overwrite' ? null : existing;
  const primaryKey = target.mode === 'append' ? [] : target.primary_key;
  const fresh = columnTypes(target.columns, { primaryKey, version });
  const typed = target.columns.map((column, index) => {
    const type = kept?.types.get(column.name.toLowerCase()) ?? fresh[index]!;
    return { name: column.name, type, shape: shapeOf(column, type) };
  });
  return { ...target, existing, typed, version, relation: relation(target.schema, target.table) };
}
