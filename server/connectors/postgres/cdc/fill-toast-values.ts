import type { Cell, ConnectorContext, ReadRequest } from '../../contract/connector.ts';
import { fromClause } from '../../kits/sql/request.ts';
import { type PgSession, withSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { identifier, literal, postgresNames } from '../connection/sql.ts';

/** A row with values that neither the log nor the destination has. */
export interface Gap {
  row: Cell[];
  /** Indexes of the columns. */
  columns: number[];
  /** Values of the primary key, in its order. */
  key: string[];
}

const MAX_ROWS_PER_QUERY = 1_000;

/** Reads missing values from the table as it is now. Changes made since then follow later in the log. */
export async function fillGaps(
  ctx: ConnectorContext<PostgresSourceConfig>,
  request: ReadRequest,
  gaps: readonly Gap[],
): Promise<void> {
  if (gaps.length === 0) return;
  const alike = Map.groupBy(gaps, ({ columns }) => columns.join());
  await withSession(ctx, { phase: 'run' }, async (session) => {
    for (const some of alike.values()) {
      for (let at = 0; at < some.length; at += MAX_ROWS_PER_QUERY)
        await fill(session, request, some.slice(at, at + MAX_ROWS_PER_QUERY));
    }
  });
}

async function fill(session: PgSession, request: ReadRequest, gaps: Gap[]): Promise<void> {
  const { stream, primary_key } = request;
  const fields = gaps[0]!.columns.map((index) => request.columns[index]!.field);
  const wanted = fields.map(({ path }) => `t.${identifier(path[0]!)}`);
  const keys = primary_key.map(([name], at) => {
    const type = stream.fields.find(({ path }) => path[0] === name)!.source_type;
    return {
      values: `array[${gaps.map(({ key }) => literal(key[at]!)).join(', ')}]::${type}[]`,
      isSame: `t.${identifier(name!)} = w.k${at}`,
    };
  });
  const { rows } = await session.query(
    `select w.at, ${wanted.join(', ')} from ${fromClause(postgresNames, request)} t
       join unnest(${keys.map(({ values }) => values).join(', ')})
            with ordinality as w(${keys.map((_, at) => `k${at}`).join(', ')}, at)
         on ${keys.map(({ isSame }) => isSame).join(' and ')}`,
  );
  for (const [at, ...values] of rows) {
    const { row, columns } = gaps[Number(at) - 1]!;
    for (const [place, index] of columns.entries()) {
      row[index] = cellOf(values[place], fields[place]!.type === 'boolean');
    }
  }
}

export const cellOf = (value: string | null | undefined, boolean: boolean): Cell => {
  if (value == null) return null;
  return boolean ? (value === 't' ? 'true' : 'false') : value;
};
