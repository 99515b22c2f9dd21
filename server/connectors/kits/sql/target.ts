import type { WriteTarget } from '../../contract/connector.ts';
import { DELETED_AT } from '../../contract/changes.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { refuseReserved } from '../../contract/reserved-names.ts';
import { checkedName, type Dialect } from './dialect.ts';

export type PlacedTarget = WriteTarget & { schema: string };

export interface Column {
  name: string;
  /** As it is, or will be, in the table that takes the rows. */
  type: string;
  /** The server stores another value in place of NULL. */
  replacesNull?: boolean;
}

export interface ExistingTable {
  /** Folded column name to type. */
  types: Map<string, string>;
  /** Folded names of columns in which the server stores another value in place of NULL. Absent: none. */
  replacesNull?: ReadonlySet<string>;
}

/** A WriteTarget with names that the database can store, resolved against the table that exists. */
export interface Target<Table extends ExistingTable = ExistingTable> extends PlacedTarget {
  /** Quoted. */
  relation: string;
  typed: Column[];
  existing: Table | null;
}

/** Rows are merged by the primary key. */
export const isMerge = ({ mode }: Pick<WriteTarget, 'mode'>) => mode !== 'append' && mode !== 'overwrite';

/** The columns that make up the key of the table; `append` has none. */
export const keyOf = ({ mode, primary_key }: Pick<WriteTarget, 'mode' | 'primary_key'>): readonly string[] =>
  mode === 'append' ? [] : primary_key;

const noColumns = ({ table }: PlacedTarget) =>
  new ConfigurationError(
    'no_fields',
    `Table ${table} would have no columns. Select a field; an empty file has none until it is filled`,
  );

/** @throws ConfigurationError for what the database could never do. */
export function checkTarget(dialect: Dialect, target: PlacedTarget): void {
  checkedName(dialect, 'schema', target.schema);
  checkedName(dialect, 'table', target.table);
  refuseReserved(target.table);
  const names = target.columns.map(({ name }) => dialect.names.fold(checkedName(dialect, 'column', name)));
  if (names.length === 0) throw noColumns(target);
  const twice = target.columns.find((_, index) => names.indexOf(names[index]!) !== index);
  if (twice) {
    throw new ConfigurationError(
      'duplicate_column',
      `Two fields map to the column "${twice.name}". Rename one of them`,
    );
  }
  if (isMerge(target) && target.primary_key.length === 0) {
    throw new ConfigurationError('primary_key_required', `${target.table} needs a primary key for ${target.mode}`);
  }
  if (target.mode === 'soft_delete' && names.includes(DELETED_AT)) {
    throw new ConfigurationError(
      'duplicate_column',
      `soft_delete marks rows in the column ${DELETED_AT}. Map the field of that name to another column`,
    );
  }
}

/** `overwrite` creates a new table; the other modes keep the columns that exist. */
export function resolveTarget<Table extends ExistingTable>(
  dialect: Dialect,
  target: PlacedTarget,
  existing: Table | null,
): Target<Table> {
  const kept = target.mode === 'overwrite' ? null : existing;
  const fresh = dialect.columnTypes(target.columns, keyOf(target));
  const typed = target.columns.map(({ name }, index) => ({
    name,
    type: kept?.types.get(dialect.names.fold(name)) ?? fresh[index]!,
    ...(kept?.replacesNull?.has(dialect.names.fold(name)) && { replacesNull: true }),
  }));
  return { ...target, existing, typed, relation: dialect.relation(target.schema, target.table) };
}
