import type { Field, LogicalType } from './stream.ts';

/** What a change has besides its row, as further fields of the streams that are read from a log. */
export interface ChangeFacts {
  /** `insert`, `update`, `delete`, `truncate`; `read` for a row of a snapshot, which has nothing else. */
  _cdc_operation: string;
  _cdc_committed_at: string | null;
  /** The position of the commit, padded, so that texts sort as positions do. */
  _cdc_lsn: string | null;
}
type FactName = keyof ChangeFacts;

const TYPES: Record<FactName, LogicalType> = {
  _cdc_operation: 'string',
  _cdc_committed_at: 'timestamp_tz',
  _cdc_lsn: 'string',
};

/** A column of the table that has such a name stays what it is. */
export function changeFields(own: readonly Field[]): Field[] {
  const taken = new Set(own.map(({ path }) => path[0]));
  return (Object.keys(TYPES) as FactName[])
    .filter((name) => !taken.has(name))
    .map((name) => ({
      path: [name],
      type: TYPES[name],
      source_type: null,
      dialect: null,
      nullable: name !== '_cdc_operation',
      is_primary_key: false,
      is_cursor_candidate: false,
    }));
}

/** Columns of tables have a type of their database. */
export function factName({ path, source_type }: Field): FactName | null {
  const [name] = path;
  return source_type === null && name !== undefined && Object.hasOwn(TYPES, name) ? (name as FactName) : null;
}
