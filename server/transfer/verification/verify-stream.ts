import { and, desc, eq, inArray, isNull } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  type ConnectionRow,
  connectionRuns,
  type StreamRow,
  type StreamRunRow,
  streamRuns,
  type VerifiedStream,
} from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { loadStream } from '../../catalog/resolve-stream.ts';
import type { BuiltConnector } from '../../connector-runtime/build-connector.ts';
import { onSide, SideError } from '../../connector-runtime/side-error.ts';
import type { AnyDestination, AnySource, DigestForm, LoadedUpTo } from '../../connectors/contract/connector.ts';
import { ConfigurationError } from '../../connectors/contract/errors.ts';
import type { Deps } from '../../deps.ts';
import type { Redactor } from '../../platform/redaction/redact.ts';
import { HELD_STREAM, LIVE_RUN } from '../../pipeline/run-states.ts';
import { tableName } from '../../pipeline/transfer-plan.ts';
import { type ComparableStream, comparableStream, NotComparable } from './comparable.ts';
import { compare, type Result } from './compare.ts';

/** Differences that a certificate names. */
const NAMED = 100;

/** Both ends of a connection, open for a verification. */
export interface Ends {
  connection: ConnectionRow;
  source: AccountConnectorRow;
  from: BuiltConnector;
  to: BuiltConnector;
  signal: AbortSignal;
  redactor: Redactor;
}

export interface StreamVerdict {
  certificate: VerifiedStream;
  /** Null: not compared. */
  result: Result | null;
}

/** Compares one stream with its table. Reasons against a comparison become part of the certificate. */
export async function verifyStream(deps: Deps, ends: Ends, stream: StreamRow): Promise<StreamVerdict> {
  const begun = performance.now();
  const finish = (part: Partial<VerifiedStream>, result: Result | null): StreamVerdict => ({
    certificate: {
      ...emptyCertificate(ends.connection, stream),
      ...part,
      duration_ms: Math.round(performance.now() - begun),
    },
    result,
  });
  try {
    const { comparable, result } = await compared(deps, ends, stream);
    return finish(certificateOf(comparable, result), result);
  } catch (error) {
    const reason = reasonOf(error, ends.redactor);
    if (reason === null) throw error;
    return finish({ status: 'not_compared', reason }, null);
  }
}

async function compared(deps: Deps, { connection, source, from, to, signal }: Ends, stream: StreamRow) {
  const reader = from.connector as AnySource;
  const writer = to.connector as AnyDestination;
  if (!reader.digest || !writer.digest) {
    const { display_name } = reader.digest ? writer : reader;
    throw new NotComparable('verification_not_supported', `${display_name} cannot compute digests of its rows`);
  }
  const { schema, stream: chosen } = await loadStream(deps, { connection, source, stream });
  const comparable = comparableStream({ connection, stream: chosen, schema, source: reader });
  const is_live = await isApplied(deps.db, connection);
  const since = await loadedUpTo(deps.db, stream);
  const sides = {
    source: () => onSide('source', () => reader.digest!(from.ctx, comparable.source)),
    destination: () => onSide('destination', () => writer.digest!(to.ctx, comparable.destination)),
  };
  const result = await compare(sides, {
    refuse: ({ forms }) => refuseKey(comparable, forms),
    key: comparable.source.key.length > 0,
    since,
    is_live,
    signal,
  });
  return { comparable, result };
}

/** @throws NotComparable when no common form of the key, or of any column, exists */
function refuseKey({ source: { columns, key } }: ComparableStream, forms: readonly DigestForm[]): void {
  const unfit = key.find((index) => forms[index] === 'none');
  if (unfit !== undefined) {
    throw new NotComparable('key_not_comparable', `The key column ${columns[unfit]!.name} cannot be compared`);
  }
  if (forms.every((form) => form === 'none')) {
    throw new NotComparable('no_comparable_columns', 'No column can be compared');
  }
}

/** Codes of connectors' errors that are about the stream alone. */
const REASONS = new Set(['destination_table_missing', 'keeps_versions', 'unknown_stream']);

/** Null: a failure of the verification, not a property of the stream. */
function reasonOf(thrown: unknown, redactor: Redactor): VerifiedStream['reason'] {
  const error = thrown instanceof SideError ? thrown.cause : thrown;
  const isReason = error instanceof NotComparable || (error instanceof ConfigurationError && REASONS.has(error.code));
  return isReason ? { code: error.code, message: redactor.text(error.message) } : null;
}

const emptyCertificate = (connection: ConnectionRow, stream: StreamRow): VerifiedStream => ({
  stream_id: stream.id,
  stream_name: stream.name,
  namespace: stream.namespace,
  destination_table: tableName(connection, stream),
  status: 'not_compared',
  reason: null,
  key: [],
  columns: [],
  columns_not_compared: [],
  source_rows: 0,
  destination_rows: 0,
  ranges: 0,
  ranges_different: 0,
  missing: 0,
  extra: 0,
  different: 0,
  changed_since: 0,
  keeps_deleted: false,
  is_partial: false,
  differences: [],
  repaired: 0,
  source_at: null,
  source_position: null,
  destination_at: null,
  duration_ms: 0,
});

function certificateOf(comparable: ComparableStream, result: Result): Partial<VerifiedStream> {
  const { source, columns_not_compared, keeps_deleted } = comparable;
  const { differences, forms, source_at, destination_at, ...counts } = result;
  const unlike = source.columns.filter((_, index) => forms[index] === 'none');
  const count = (kind: string) => differences.filter((one) => one.kind === kind && one.changed_since !== true).length;
  const [missing, extra, different] = [count('missing'), count('extra'), count('different')];
  const isEqual = !result.is_partial && missing + different + (keeps_deleted ? 0 : extra) === 0;
  return {
    ...counts,
    status: isEqual ? 'equal' : 'different',
    key: source.key.map((index) => source.columns[index]!.name),
    columns: source.columns.filter((column) => !unlike.includes(column)).map(({ name }) => name),
    columns_not_compared: [...columns_not_compared, ...unlike.map(({ name }) => ({ name, reason: 'no_common_form' }))],
    keeps_deleted,
    missing,
    extra,
    different,
    changed_since: differences.filter((one) => one.changed_since === true).length,
    differences: differences.slice(0, NAMED),
    source_at: source_at.instant,
    source_position: source_at.position,
    destination_at: destination_at.instant,
  };
}

/** What the last run of the whole stream has loaded. */
async function loadedUpTo(db: Db, stream: StreamRow): Promise<LoadedUpTo> {
  const runsIn = (statuses: readonly StreamRunRow['status'][]) =>
    db
      .select({ snapshot: streamRuns.source_snapshot })
      .from(streamRuns)
      .innerJoin(connectionRuns, eq(connectionRuns.id, streamRuns.connection_run_id))
      .where(
        and(
          eq(streamRuns.stream_id, stream.id),
          inArray(streamRuns.status, [...statuses]),
          isNull(connectionRuns.custom_run_plan_id),
        ),
      )
      .orderBy(desc(streamRuns.finished_at))
      .limit(1);
  let [last] = await runsIn(['succeeded']);
  // A state shows that the first run has loaded what its snapshot shows, and follows the log since.
  if (!last && stream.state) [last] = await runsIn(HELD_STREAM);
  return { state: stream.state, snapshot: last?.snapshot ?? null };
}

/** Whether a run applies changes at the moment. */
async function isApplied(db: Db, { id }: ConnectionRow): Promise<boolean> {
  const live = and(eq(connectionRuns.connection_id, id), inArray(connectionRuns.status, LIVE_RUN));
  const [run] = await db.select({ id: connectionRuns.id }).from(connectionRuns).where(live).limit(1);
  return run !== undefined;
}
