import { type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { Db } from './types.ts';

/** A query with one column. What differs from turn to turn is a placeholder with a name that no other question has. */
export interface Question {
  name: string;
  query(db: Db): SQLWrapper;
}

interface Asked {
  question: Question;
  values: Record<string, unknown>;
  resolve(answers: unknown[]): void;
  reject(error: unknown): void;
}

const asked = new WeakMap<Db, Asked[]>();

/**
 * The values that the query finds. Queries of loops that take their turns at the same moment are one statement: an idle
 * process then sends one a second instead of one for each loop.
 */
export function askTogether<Value>(db: Db, question: Question, values: Record<string, unknown> = {}): Promise<Value[]> {
  const { promise, resolve, reject } = Promise.withResolvers<Value[]>();
  const one = { question, values, resolve: resolve as Asked['resolve'], reject };
  const others = asked.get(db);
  if (others) others.push(one);
  else {
    asked.set(db, [one]);
    // After all timers that are due.
    setImmediate(() => void answer(db));
  }
  return promise;
}

/** Whether the query finds anything. */
export const findsAny = async (db: Db, question: Question, values: Record<string, unknown> = {}): Promise<boolean> =>
  (await askTogether(db, question, values)).length > 0;

async function answer(db: Db): Promise<void> {
  // In one order, so that the same questions are the same statement.
  const all = asked.get(db)!.toSorted((one, other) => (one.question.name < other.question.name ? -1 : 1));
  asked.delete(db);
  try {
    const [row] = await statementOf(db, all).execute(Object.assign({}, ...all.map(({ values }) => values)));
    all.forEach(({ resolve }, at) => resolve(row?.answers[at] ?? []));
  } catch (error) {
    for (const { reject } of all) reject(error);
  }
}

type Statement = ReturnType<typeof build>;
const statements = new WeakMap<Db, Map<string, Statement>>();

/** Built once: that takes an idle process longer than to send it. */
function statementOf(db: Db, all: readonly Asked[]): Statement {
  const known = statements.get(db) ?? new Map<string, Statement>();
  statements.set(db, known);
  const key = all.map(({ question }) => question.name).join();
  const statement = known.get(key) ?? build(db, all);
  known.set(key, statement);
  return statement;
}

function build(db: Db, all: readonly Asked[]) {
  const answers = all.map(({ question }) => valuesOf(question.query(db)));
  return db
    .select({ answers: sql<unknown[][]>`json_build_array(${sql.join(answers, sql`, `)})` })
    .from(sql`(select) as one`)
    .prepare('questions');
}

const valuesOf = (query: SQLWrapper): SQL =>
  sql`(select coalesce(json_agg(value), '[]') from (${query}) as asked (value))`;
