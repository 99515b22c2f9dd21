import { ConfigurationError } from '../../contract/errors.ts';
import { type PendingTable, pendingState } from '../../kits/sql/publish/pending-table.ts';
import type { ExtraState, StateRow } from '../../kits/sql/state-row.ts';
import type { PgSession } from '../connection/session.ts';
import { columnList, relation } from '../connection/sql.ts';
import { pendingOf } from './pending-table.ts';
import { insertFresh } from './swap.ts';
import type { PgTarget } from './target.ts';

/** Whoever waits for the locks of the first session may hold up a session beside it, and the first one waits for that. */
const PATIENCE_MS = 1_000;

/**
 * What other sessions copy into while the first one copies into the table itself, whose transaction then moves all rows:
 * they appear with its own and with the state, at once. The server's log does not have it, so it costs little more than
 * the move; prepared transactions would spare that, but most servers allow none, and those that a crash leaves behind hold
 * up the vacuum of all databases until an administrator ends them.
 */
export class BesideTable {
  readonly relation: string;
  readonly #pending: PendingTable;
  /** The table, in a transaction of its own. */
  #created: Promise<void> | null = null;

  constructor(private readonly target: PgTarget) {
    this.#pending = pendingOf(target);
    this.relation = relation(target.schema, this.#pending.name);
  }

  /** Creates it unless another session does, and notes it by the same transaction. */
  create(session: PgSession, state: StateRow): Promise<void> {
    return (this.#created ??= this.#create(session, state));
  }

  /** Resolves when it is known whether the table is there. */
  async isCreated(): Promise<boolean> {
    const created = this.#created?.then(
      () => true,
      () => false,
    );
    return (await created) ?? false;
  }

  /** In the open transaction of the first session. */
  async moveRows(session: PgSession): Promise<{ extra?: ExtraState }> {
    const isCreated = await this.isCreated();
    this.#created = null;
    if (!isCreated) return {};
    await insertFresh(session, this.target, this.#pending.name);
    return { extra: pendingState(null) };
  }

  async #create(session: PgSession, state: StateRow): Promise<void> {
    const { columns, relation: table } = this.target;
    const { rows } = await session.query(`select relhasrules from pg_class where oid = $1::regclass`, {
      values: [table],
    });
    if (rows[0]?.[0] === 't') {
      throw new ConfigurationError('table_has_rules', `Rules of ${table} change rows that are moved into it`);
    }
    const names = columnList(columns.map(({ name }) => name));
    await session.query(`begin; set local lock_timeout = '${PATIENCE_MS}ms'`);
    await state.note(pendingState(this.#pending), session);
    await session.query(`create unlogged table ${this.relation} as select ${names} from ${table} with no data`);
    await session.query('commit');
  }
}
