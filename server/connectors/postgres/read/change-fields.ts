import type { Field, LogicalType } from '../../contract/connector.ts';

/** What is told of a change besides its row: the fields that streams read from the log have more. */
export interface ChangeFacts {
  /** `insert`, `update`, `delete`, `truncate`; `read` for a row of a snapshot, which has nothing else. */
  _cdc_operation: string;
  _cdc_committed_at: string | null;
  /** Of the commit, 16 hexadecimal digits and a slash, so that texts sort as positions do. */
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

/** Columns of tables have a type of PostgreSQL. */
export function factName({ path, source_type }: Field): FactName | null {
  const [name] = path;
  return source_type === null && name !== undefined && Object.hasOwn(TYPES, name) ? (name as FactName) : null;
}

/** What such a field is in a SELECT; null: it is a column. */
export function changeFieldOfRow(field: Field): string | null {
  const name = factName(field);
  if (name === null) return null;
  return name === '_cdc_operation' ? "'read'::text" : name === '_cdc_lsn' ? 'null::text' : 'null::timestamptz';
}
