import type { PgBoss } from 'pg-boss';

type QueueDatabase = Pick<ReturnType<PgBoss['getDb']>, 'executeSql'>;

/** The server keeps what was prepared, in each connection. */
const MAX_STATEMENTS = 100;
/** A migration has changed the columns of the result, or the server no longer has the statement. */
const STALE = ['0A000', '26000'];

/**
 * Prepares statements of the queue that come again. pg-boss has each of them planned every time, although the one that
 * fetches a job is always the same.
 */
export function prepareRepeated(db: QueueDatabase): void {
  const send = db.executeSql.bind(db);
  const seen = new Map<string, number>();
  let generation = 0;
  /** Null: not prepared. */
  const nameOf = (text: string, values: unknown[] | undefined): string | null => {
    // Without values it may be several statements, which cannot be prepared.
    if (values === undefined || (values.length === 0 && text.includes(';'))) return null;
    const known = seen.get(text);
    if (known !== undefined) return `queue_${generation}_${known}`;
    if (seen.size < MAX_STATEMENTS) seen.set(text, seen.size);
    return null;
  };
  db.executeSql = async (text, values) => {
    const name = nameOf(text, values);
    if (name === null) return send(text, values);
    try {
      // The driver takes the text, its name and the values as one argument.
      return await send({ name, text, values } as unknown as string);
    } catch (error) {
      if (!STALE.includes((error as { code?: string }).code ?? '')) throw error;
      generation += 1;
      return send(text, values);
    }
  };
}
