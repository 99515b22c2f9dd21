import type { Database } from 'bun:sqlite';
import { datasetClause, datasetField, describedFields } from '../kits/sql/datasets.ts';
import type { Dataset, Field } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import type { Context } from './database.ts';
import { sqliteError } from './failures.ts';
import { fittingTypes } from './fitting-types.ts';
import { isOrdered } from '../kits/sql/streams.ts';
import { COMPUTED, candidatesOf, isUndeclared, shownType } from './types.ts';

/**
 * The fields of a query. SQLite knows no types of what it works out, so all rows are looked at once, as a table's are.
 * @throws ConfigurationError naming the dataset: it is no single query, fails, or has two columns of one name
 */
export const datasetFields = (ctx: Context, database: Database, dataset: Dataset): Promise<Field[]> =>
  describedFields(dataset, async () => {
    const columns = queryColumns(ctx, database, dataset.sql);
    const from = datasetClause(dataset.sql, 't');
    const types = await fittingTypes(ctx, database, { from, columns }).catch((error: unknown) => {
      throw sqliteError(error, ctx.config.path);
    });
    return columns.map(({ name, declared }, at) => {
      const type = types[at] ?? 'string';
      const about = { type, source_type: shownType(declared, type), dialect: 'sqlite' };
      return datasetField(name, { ...about, is_cursor_candidate: isOrdered(type) });
    });
  });

/** The same without looking at a row. @throws as above */
export const checkDataset = (ctx: Context, database: Database, dataset: Dataset): Promise<Field[]> =>
  describedFields(dataset, async () =>
    queryColumns(ctx, database, dataset.sql).map(({ name }) =>
      datasetField(name, { type: 'string', source_type: null, dialect: null, is_cursor_candidate: false }),
    ),
  );

/**
 * What is a statement by itself and within brackets too is one query that reads: a second statement, or one that changes
 * or attaches something, is a mistake within brackets, and what closes them is one without.
 */
function queryColumns(ctx: Context, database: Database, sql: string) {
  try {
    using alone = database.prepare(sql);
    using _within = database.prepare(`select * from ${datasetClause(sql, 't')}`);
    if (alone.paramsCount > 0) {
      throw new ConfigurationError('statement_refused', 'The query has a parameter where a value should be');
    }
    const { columnNames, declaredTypes } = alone;
    return columnNames.map((name, at) => {
      const declared = declaredTypes[at] ?? '';
      return { name, declared, candidates: isUndeclared(declared) ? COMPUTED : candidatesOf(declared) };
    });
  } catch (error) {
    // SQLite finds nothing in it but comments.
    if (error instanceof Error && error.message === 'Invalid SQL statement') {
      throw new ConfigurationError('statement_refused', 'There is no query in it');
    }
    throw sqliteError(error, ctx.config.path);
  }
}
