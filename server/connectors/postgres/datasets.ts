import type { Dataset, Field, StreamSchema } from '../define.ts';
import { ConfigurationError, ConnectorError } from '../errors.ts';
import type { PgSession } from './session.ts';
import { DATES, DIALECT, isCursorType, logicalType } from './types.ts';

/** The query as a table: what ends it must not end ours, be it a semicolon or a comment. */
export const datasetClause = (sql: string) => `(\n${sql.replace(/[;\s]+$/, '')}\n) q`;

/**
 * The fields of a query, which is not run for it. The transaction around this must be read only.
 * @throws ConfigurationError naming the dataset: it is no single query, fails, or has two columns of one name
 */
export async function datasetFields(session: PgSession, { name, sql }: Dataset): Promise<Field[]> {
  const columns = await session.describe(`select * from ${datasetClause(sql)} limit 0`).catch((error: unknown) => {
    if (!(error instanceof ConnectorError) || error.retryable) throw error;
    throw new ConfigurationError('invalid_dataset', `Dataset "${name}": ${error.message}`, { cause: error });
  });
  const names = columns.map((column) => column.name);
  const twice = names.find((one, at) => names.indexOf(one) !== at);
  if (twice !== undefined) {
    throw new ConfigurationError('invalid_dataset', `Dataset "${name}": two columns are named "${twice}"`);
  }
  const list = (values: number[]) => `{${values.join(',')}}`;
  const { rows } = await session.query(
    `select format_type(t.oid, c.modifier), case when t.typtype = 'd' then format_type(t.typbasetype, t.typtypmod) end
       from unnest($1::oid[], $2::int[]) with ordinality as c (type, modifier, place) join pg_type t on t.oid = c.type
      order by c.place`,
    [list(columns.map((column) => column.type)), list(columns.map((column) => column.modifier))],
  );
  return names.map((column, at): Field => {
    const [type = null, base = null] = rows[at] ?? [];
    const logical = logicalType(base ?? type ?? 'text');
    return {
      path: [column],
      type: logical,
      source_type: type,
      dialect: DIALECT,
      nullable: true,
      is_primary_key: false,
      is_cursor_candidate: isCursorType(logical),
    };
  });
}

/** Datasets as streams without a namespace. */
export async function datasetStreams(session: PgSession, datasets: readonly Dataset[]): Promise<StreamSchema[]> {
  if (datasets.length === 0) return [];
  const streams: StreamSchema[] = [];
  await session.query('begin read only');
  for (const dataset of datasets) {
    const fields = await datasetFields(session, dataset);
    streams.push({
      namespace: null,
      name: dataset.name,
      description: null,
      fields,
      supported_sync_modes: ['full_refresh', 'incremental'],
      source_defined_cursor: false,
      default_cursor_field: null,
      source_defined_primary_key: null,
      is_resumable: fields.some((field) => field.is_cursor_candidate),
      supports_date_window: fields.some((field) => DATES.has(field.type)),
      suggested: true,
      dataset_sql: dataset.sql,
    });
  }
  await session.query('rollback');
  return streams;
}
