import type { NameRules, TargetColumn } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { nameProblem } from '../../contract/names.ts';
import type { ValueType } from '../../cells/casts.ts';
import type { TextRules } from '../../cells/text-rules.ts';
import type { MergeDialect } from './merge/merge-dialect.ts';

/** Every value as text, in the canonical form of a cell. */
export type Row = (string | null)[];

/** What the kit needs of a connection. Transactions are statements: `begin`, `savepoint x`, `commit`. */
export interface SqlSession {
  /** Runs one statement. `slow`: it has no time limit of its own. `count`: rows that it changed. */
  query(text: string, options?: { slow?: boolean }): Promise<{ rows: Row[]; count: number }>;
  /** `query` takes several statements, and returns what the last one returns. */
  readonly takesSeveral?: boolean;
  /** Turns what the driver threw into a ConnectorError. */
  translate(error: unknown): unknown;
}

/** A session and the SQL it understands: what most functions of this kit take. */
export interface SqlDatabase<Session extends SqlSession = SqlSession> {
  session: Session;
  dialect: Dialect;
}

/** SQL of one database, as data and small functions. */
export interface Dialect {
  /** Columns and tables are the same ones if their folded names are. */
  names: NameRules & {
    /** What the database calls the place of a table. */
    schema: 'schema' | 'database';
  };
  identifier(name: string): string;
  literal(text: string): string;
  relation(schema: string, table: string): string;

  /** Column types of the tables that the kit creates for itself, and of `_deleted_at`. */
  types: { id: string; text: string; state: string; json: string; boolean: string; instant: string };
  /** The current time, as SQL. */
  now: string;
  /** Goes behind the column list of every table that is created; '' for none. */
  tableOptions: string;
  /** The same of tables whose rows merges update. Absent: as of any other. */
  mergedTableOptions?: string;
  /** False: `_pipeline_state` has no primary key. */
  hasKeys: boolean;
  /** Locks the rows of a SELECT until the end of the transaction; '' where a file has one writer. */
  forUpdate: string;
  insertIfAbsent(row: { table: string; columns: string; values: string; key: string }): string;
  /**
   * A SELECT of one row: something or null for the schema, the same for the table. A third column may have the names of
   * the table's columns as a JSON array.
   */
  findNames(schema: string, table: string): string;
  createSchema(schema: string): string;

  /** The types that new columns get. `key`: names of those that belong to the primary key. */
  columnTypes(columns: readonly TargetColumn[], key: readonly string[]): string[];
  /** What a column of the type holds. */
  holds(type: string): ValueType;
  texts: TextRules;
  /** A column of the first type can become one of the second without losing a value. */
  widens(from: string, to: string): boolean;
  changeType(column: { name: string; type: string; isKey: boolean }): string;
  /** Statements that apply changes to a table. */
  alterTable(relation: string, changes: readonly string[]): string[];

  merge: MergeDialect;
}

type Answer = Awaited<ReturnType<SqlSession['query']>>;

/** Runs statements in order, in one message where the session can. @returns what the last one returns */
export async function inOrder(session: SqlSession, statements: readonly string[]): Promise<Answer> {
  if (session.takesSeveral) return session.query(statements.join('; '));
  let last: Answer = { rows: [], count: 0 };
  for (const statement of statements) last = await session.query(statement);
  return last;
}

export const columnList = ({ identifier }: Pick<Dialect, 'identifier'>, names: readonly string[]): string =>
  names.map(identifier).join(', ');

export const textOrNull = ({ literal }: Pick<Dialect, 'literal'>, text: string | null): string =>
  text === null ? 'null' : literal(text);

/** @throws ConfigurationError when the database cannot store the name as it is. */
export function checkedName({ names }: Dialect, kind: 'schema' | 'table' | 'column', name: string): string {
  const problem = nameProblem(names, kind === 'schema' ? names.schema : kind, name);
  if (problem) throw new ConfigurationError(problem.code, problem.message);
  return name;
}
