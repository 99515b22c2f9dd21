import type { ConnectorContext, ReplicatedBatch, ReplicationRequest, StreamState } from '../../contract/connector.ts';
import { CannotContinueError, DataError } from '../../contract/errors.ts';
import { ofStream, StreamsFailed } from '../../contract/replication.ts';
import type { LineMark } from '../../kits/log/change-lines.ts';
import { BATCH_BYTES, BATCH_ROWS, type ChangeLog, OVERSIZE } from '../../kits/log/follow.ts';
import { MysqlSession, withSession } from '../connection/session.ts';
import type { MysqlSourceConfig } from '../connection/settings.ts';
import { keepsZeroDates } from '../read/read-rows.ts';
import { LineCollector } from './change-lines.ts';
import { ChangeRows, type RowsEvent } from './change-rows.ts';
import type { Charsets } from './values/charsets.ts';
import type { LogEvent } from './events.ts';
import { fillColumns } from './fill-columns.ts';
import { assertNext, covers, type Gtid, highestOf, lowestOf, positionText } from './gtid.ts';
import { logFlavorOf } from './log-flavor.ts';
import { type Placed, stateOf } from './log-members.ts';
import { RESET_HINT } from './reset-hint.ts';
import { effectOf, opensTransaction, type TableName } from './statements.ts';
import { type LoggedTable, parseTable } from './table-map.ts';
import type { ByteReader } from './values/byte-reader.ts';
import { assertUnchanged, tableReplaced } from './table-shape.ts';
import type { LogFile } from './log-server.ts';

type Context = ConnectorContext<MysqlSourceConfig>;

/** A stream and the changes that have been read of it. */
interface Follower {
  member: Placed;
  /** What comes before `rows`; null: all of it is there. */
  lines: LineCollector | null;
  rows: ChangeRows;
  /** Since the last batch there was a change that is not a line. Those after it must not come before it. */
  byRows: boolean;
  /** As the log had it last. */
  table: LoggedTable | null;
  /** The transaction that has been begun, and what there was before it. */
  begun: Begun | null;
  kept: Kept;
}

interface Kept {
  rows: number;
  lines: LineMark | null;
}
const NOTHING_KEPT: Kept = { rows: 0, lines: null };

interface Begun {
  gtid: Gtid;
  standalone: boolean;
  seconds: number;
}

/** The changes of all streams of a log since the last batch, by stream. */
export class SharedLog implements ChangeLog {
  /** Inside a transaction. */
  isOpen = false;
  /** Every transaction up to here has been read. */
  readonly position: Map<Gtid['domain'], Gtid>;
  file: LogFile | null = null;
  #bytes = 0;
  #count = 0;
  #zeroDates = 0;
  #begun: Begun | null = null;
  /** A part of the open transaction has been passed on. */
  #isPartial = false;
  readonly #charsets: Charsets;
  readonly #followers: Follower[];
  readonly #byTable: Map<string, Follower>;
  /** By the id that the log gives a table; null: it is not read. */
  readonly #byId = new Map<number, Follower | null>();
  /** Followed tables by their ids in the current file: while a description stays the same, its name need not be read. */
  readonly #described = new Map<number, Follower>();

  constructor(
    private readonly ctx: Context,
    members: readonly Placed[],
    { charsets, as_lines }: { charsets: Charsets } & Pick<ReplicationRequest, 'as_lines'>,
  ) {
    this.#charsets = charsets;
    this.position = lowestOf(members.map((member) => member.position));
    const options = { charsets, keep_zero_dates: keepsZeroDates(ctx), onZeroDate: () => void this.#zeroDates++ };
    this.#followers = members.map((member) => ({
      member,
      lines: as_lines?.has(member.at) ? new LineCollector(member.request, options) : null,
      rows: new ChangeRows(member.request, options),
      byRows: false,
      table: null,
      begun: null,
      kept: NOTHING_KEPT,
    }));
    this.#byTable = new Map(this.#followers.map((one) => [keyOf(nameOf(one)), one]));
  }

  get hasChanges(): boolean {
    return this.#count > 0;
  }

  get ageSeconds(): number {
    return Math.max(0, Date.now() / 1000 - (this.#begun?.seconds ?? 0));
  }

  isFull(): boolean {
    const times = this.isOpen ? OVERSIZE : 1;
    return this.#count >= BATCH_ROWS * times || this.#bytes >= BATCH_BYTES * times;
  }

  /** @param raw the event as it arrived. @returns a promise where a table has to be looked at first */
  read(event: LogEvent, raw: Buffer): Promise<void> | null {
    switch (event.kind) {
      case 'begin':
        if (this.isOpen) throw new DataError('binlog_corrupt', 'A transaction of the binary log has no end');
        assertNext(this.position, event.gtid);
        [this.isOpen, this.#begun, this.#isPartial] = [true, event, false];
        this.#byId.clear();
        return null;
      case 'table':
        return this.#useTable(event.id, event.body);
      case 'rows':
        return this.#add(event, raw.length);
      case 'statement':
        return this.#statement(event, raw);
      case 'commit':
        this.#commit(raw);
        return null;
      case 'prepared':
        this.#refusePrepared();
        this.#commit(raw);
        return null;
      case 'file':
        this.file = { name: event.name, position: event.position };
        this.#described.clear();
        return null;
      default:
        return null;
    }
  }

  async border(): Promise<ReplicatedBatch> {
    return { parts: await this.take(), states: this.states() };
  }

  async take(): Promise<ReplicatedBatch['parts']> {
    const parts: ReplicatedBatch['parts'] = [];
    for (const follower of this.#followers) {
      const { member, rows } = follower;
      follower.byRows = false;
      const lines = follower.lines?.take();
      if (lines) parts.push({ stream: member.at, batch: { rows: [], bytes: lines.bytes.length, lines } });
      if (rows.rows.length === 0) continue;
      await ofStream(member.at, () => fillColumns(this.ctx, member.request, rows.gaps));
      const taken = rows.take();
      const bytes = Math.ceil((this.#bytes * taken.rows.length) / Math.max(1, this.#count));
      parts.push({ stream: member.at, batch: { ...taken, bytes } });
    }
    [this.#bytes, this.#count, this.#isPartial] = [0, 0, this.isOpen];
    for (const follower of this.#followers) follower.kept = NOTHING_KEPT;
    this.#warnOfZeroDates();
    return parts;
  }

  /** A stream that is ahead of the position stays where it is. */
  states(): StreamState[] {
    return this.#followers.map(({ member }) => stateOf(highestOf(this.position, member.position), this.file));
  }

  #warnOfZeroDates(): void {
    if (this.#zeroDates === 0) return;
    this.ctx.warn(
      'zero_date',
      `${this.#zeroDates} dates without a year, month or day, such as 0000-00-00, were read as NULL`,
    );
    this.#zeroDates = 0;
  }

  #commit(raw: Buffer): void {
    const end = raw.readUInt32LE(13);
    if (this.file && end > 0) this.file = { name: this.file.name, position: end };
    this.isOpen = false;
    if (!this.#begun) return;
    const { gtid } = this.#begun;
    if (!covers(this.position, gtid)) this.position.set(gtid.domain, gtid);
  }

  /** Null: the table is not read, or the stream has read this transaction before. */
  #followerOf(table: TableName): Follower | null {
    return this.#unlessRead(this.#byTable.get(keyOf(table)));
  }

  /** Null: the stream has read this transaction before. */
  #unlessRead(follower: Follower | undefined): Follower | null {
    return follower && this.#begun && !covers(follower.member.position, this.#begun.gtid) ? follower : null;
  }

  /** The log repeats an unchanged table in each transaction. */
  #useTable(id: number, body: ByteReader): Promise<void> | null {
    const described = this.#described.get(id);
    const isKnown = described?.table != null && isSame(described.table, body);
    const follower = isKnown ? this.#unlessRead(described) : this.#followerOf(tableNameOf(body));
    if (!follower) {
      this.#byId.set(id, null);
      return null;
    }
    this.#described.set(id, follower);
    if (isKnown || (follower.table && isSame(follower.table, body))) {
      this.#byId.set(id, follower);
      return null;
    }
    return ofStream(follower.member.at, async () => {
      // A copy: the bytes of an event do not stay.
      const copy = Buffer.from(body.rest());
      const { request, shape } = follower.member;
      const table = await withSession(this.ctx, { phase: 'run' }, async (session) => {
        await assertUnchanged(session, request, shape);
        return parseTable(copy, logFlavorOf(session).signed);
      });
      const open = () => MysqlSession.open(this.ctx, { phase: 'run' });
      await this.#charsets.prepare(
        open,
        table.columns.map(({ collation }) => collation),
      );
      follower.rows.useTable(table);
      follower.lines?.useTable(table);
      follower.table = table;
      this.#byId.set(id, follower);
    });
  }

  #add(event: RowsEvent, bytes: number): null {
    const follower = this.#byId.get(event.table);
    if (follower === undefined) throw new Error('the log has rows of a table that it did not describe');
    if (follower === null) return null;
    this.#bytes += bytes;
    this.#change(follower, () => {
      if (!follower.byRows && follower.lines?.add(event)) return;
      follower.byRows = true;
      follower.rows.add(event);
    });
    return null;
  }

  #change(follower: Follower, change: () => void): void {
    const { member, rows, lines } = follower;
    if (follower.begun !== this.#begun) {
      const { gtid, seconds } = this.#begun!;
      rows.begin(gtid, seconds);
      lines?.begin(gtid, seconds);
      follower.begun = this.#begun;
      follower.kept = { rows: rows.rows.length, lines: lines?.mark() ?? null };
    }
    const before = countOf(follower);
    try {
      change();
    } catch (error) {
      throw new StreamsFailed(new Map([[member.at, error]]));
    }
    this.#count += countOf(follower) - before;
  }

  #statement({ database, text }: Extract<LogEvent, { kind: 'statement' }>, raw: Buffer): Promise<void> | null {
    const effect = effectOf(text, database);
    if (this.#begun && opensTransaction(text)) this.#begun.standalone = false;
    switch (effect.kind) {
      case 'rollback':
        this.#rollBack();
        this.#commit(raw);
        return null;
      case 'commit':
        this.#commit(raw);
        return null;
      case 'unlogged_rows':
        throw unloggedRows(text);
      case 'truncate':
        for (const table of effect.tables) {
          const follower = this.#followerOf(table);
          if (follower) this.#truncate(follower);
        }
        break;
      case 'replace':
        this.#refuse(
          effect.tables.map((table) => this.#followerOf(table)),
          text,
        );
        break;
      case 'drop_database':
        this.#refuse(
          this.#followers.map((one) =>
            nameOf(one).database === effect.database ? this.#followerOf(nameOf(one)) : null,
          ),
          text,
        );
        break;
      default:
        break;
    }
    if (this.#begun?.standalone) this.#commit(raw);
    return null;
  }

  #truncate(follower: Follower): void {
    this.#change(follower, () => {
      follower.byRows = true;
      follower.rows.truncate();
    });
  }

  /** Only rows of InnoDB are read, all of which a rollback undoes. */
  #rollBack(): void {
    const open = this.#followers.filter((one) => one.begun === this.#begun);
    if (open.length === 0) return;
    if (this.#isPartial) throw unloggedRows('ROLLBACK');
    for (const follower of open) {
      const { rows, lines, kept } = follower;
      this.#count -= countOf(follower);
      rows.cut(kept.rows);
      if (kept.lines) lines?.cut(kept.lines);
      this.#count += countOf(follower);
    }
  }

  #refuse(found: readonly (Follower | null)[], statement: string): void {
    const failures = found.flatMap((one) =>
      one ? [[one.member.at, tableReplaced(one.member.request.stream.name, statement)] as const] : [],
    );
    if (failures.length > 0) throw new StreamsFailed(new Map(failures));
  }

  /** Whether the rows stay is known by a later event, maybe after the end of the read. */
  #refusePrepared(): void {
    const open = this.#followers.filter((one) => one.begun === this.#begun);
    const failures = open.map(
      ({ member }) =>
        [
          member.at,
          new CannotContinueError(
            'xa_transaction',
            `${member.request.stream.name} was changed by an XA transaction in two phases (GTID ${positionText(this.position)} and later), which the log shows before its end. ${RESET_HINT}`,
          ),
        ] as const,
    );
    if (failures.length > 0) throw new StreamsFailed(new Map(failures));
  }
}

const unloggedRows = (statement: string) =>
  new CannotContinueError(
    'statement_logged',
    `The log has a statement instead of the rows that it changed: ${statement.slice(0, 100)}. Set binlog_format = ROW for all sessions. ${RESET_HINT}`,
  );

const countOf = ({ rows, lines }: Follower) => rows.rows.length + (lines?.rows ?? 0);

const nameOf = ({ member }: Follower): TableName => ({
  database: member.request.stream.namespace ?? '',
  name: member.request.stream.name,
});

const keyOf = ({ database, name }: TableName) => `${database}\0${name}`;

/** The database and the table that an event describes. */
function tableNameOf({ bytes, at }: ByteReader): TableName {
  const end = at + 3 + bytes[at + 2]!;
  const start = end + 2;
  return {
    database: bytes.toString('utf8', at + 3, end),
    name: bytes.toString('utf8', start, start + bytes[end + 1]!),
  };
}

/** Whether an event describes the table as it is known. */
const isSame = (known: LoggedTable, { bytes, at, end }: ByteReader) =>
  known.body.length === end - at && known.body.compare(bytes, at, end) === 0;
