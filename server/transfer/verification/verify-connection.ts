import { and, eq, inArray, sql } from 'drizzle-orm';
import {
  connections,
  connectionStreams,
  LIVE_VERIFICATION,
  type StreamRow,
  type VerificationRow,
  verifications,
  type VerifiedStream,
} from '../../../db/schema/index.ts';
import { taskActor } from '../../events/account-connector-events.ts';
import { UNRECORDED } from '../../connector-runtime/account-connector-calls.ts';
import { redactorOf } from '../../connector-runtime/connector-secrets.ts';
import { loadSides } from '../../runs/load-sides.ts';
import { type ConnectorHooks, openConnector } from '../../connector-runtime/open-connector.ts';
import { onSide, SideError } from '../../connector-runtime/side-error.ts';
import { ConnectorError } from '../../connectors/contract/errors.ts';
import type { Deps } from '../../deps.ts';
import { emitVerificationEvent } from '../../events/verification-events.ts';
import { periodic } from '../../platform/periodic.ts';
import { NotComparable } from './comparable.ts';
import { repairStream } from './repair-stream.ts';
import { type Ends, verifyStream } from './verify-stream.ts';

const HEARTBEAT_MS = 1_000;
export const MAX_ATTEMPTS = 3;

/** A user asked the verification to stop. */
class VerificationStopped extends Error {}
/** Another worker has ended it. */
class VerificationGone extends Error {}

/** Handler of the job `verify_connection`. Delivered twice, it compares twice. */
export async function verifyConnectionJob(deps: Deps, verification_id: string, stopping: AbortSignal): Promise<void> {
  const row = await claim(deps, verification_id);
  if (!row) return;
  if (row.attempts > MAX_ATTEMPTS) return end(deps, row, { status: 'failed', error: workerKilled() });
  const abort = new AbortController();
  const signal = AbortSignal.any([abort.signal, stopping]);
  const cleanUps: (() => Promise<void>)[] = [];
  const heartbeat = periodic(() => sendHeartbeat(deps, row, abort), { every_ms: HEARTBEAT_MS, onError: () => {} });
  try {
    const streams = await verifyStreams(deps, row, { signal, cleanUp: (work) => void cleanUps.push(work) });
    await end(deps, row, conclusionOf(streams));
  } catch (error) {
    if (stopping.aborted) throw error;
    await endBy(deps, row, signal.aborted ? signal.reason : error);
  } finally {
    await heartbeat.stop();
    await Promise.allSettled(cleanUps.map((work) => work()));
  }
}

async function claim({ db }: Deps, id: string): Promise<VerificationRow | null> {
  const [row] = await db
    .update(verifications)
    .set({
      status: sql`case when ${verifications.status} = 'queued' then 'running' else ${verifications.status} end`,
      attempts: sql`${verifications.attempts} + 1`,
      heartbeat_at: sql`clock_timestamp()`,
      started_at: sql`coalesce(${verifications.started_at}, clock_timestamp())`,
    })
    .where(and(eq(verifications.id, id), inArray(verifications.status, LIVE_VERIFICATION)))
    .returning();
  return row ?? null;
}

async function sendHeartbeat({ db }: Deps, { id }: VerificationRow, abort: AbortController): Promise<void> {
  const [row] = await db
    .update(verifications)
    .set({ heartbeat_at: sql`clock_timestamp()` })
    .where(and(eq(verifications.id, id), inArray(verifications.status, LIVE_VERIFICATION)))
    .returning({ status: verifications.status });
  if (!row) abort.abort(new VerificationGone('The verification has ended'));
  if (row?.status === 'stopping') abort.abort(new VerificationStopped('A stop of the verification was requested'));
}

async function verifyStreams(
  deps: Deps,
  row: VerificationRow,
  hooks: Pick<ConnectorHooks, 'signal' | 'cleanUp'>,
): Promise<VerifiedStream[]> {
  const ends = await openEnds(deps, row, hooks);
  const streams = await streamsOf(deps, row);
  const certificates: VerifiedStream[] = [];
  for (const stream of streams) {
    hooks.signal.throwIfAborted();
    const certificate = await certify(deps, ends, { row, stream }).catch((error: unknown) => {
      throw withoutSecrets(error, ends);
    });
    certificates.push(certificate);
    await deps.db.update(verifications).set({ streams: certificates }).where(eq(verifications.id, row.id));
  }
  return certificates;
}

/** With `repair`, rows that differ are loaded again, and the stream is compared once more. */
async function certify(
  deps: Deps,
  ends: Ends,
  { row, stream }: { row: VerificationRow; stream: StreamRow },
): Promise<VerifiedStream> {
  const { certificate, result } = await verifyStream(deps, ends, stream);
  if (!row.repair || certificate.status !== 'different' || !result) return certificate;
  const differences = result.differences.filter(
    ({ kind, changed_since }) => changed_since !== true && !(kind === 'extra' && certificate.keeps_deleted),
  );
  try {
    await repairStream(deps, ends, { verification: row, stream, differences });
  } catch (error) {
    if (!(error instanceof NotComparable)) throw error;
    return { ...certificate, reason: { code: error.code, message: error.message } };
  }
  const again = await verifyStream(deps, ends, stream);
  return { ...again.certificate, repaired: differences.length };
}

function withoutSecrets(thrown: unknown, { redactor }: Ends): unknown {
  const error = thrown instanceof SideError ? thrown.cause : thrown;
  return error instanceof ConnectorError ? new ConnectorError(error.code, redactor.text(error.message)) : error;
}

async function streamsOf({ db }: Deps, { connection_id, stream_names }: VerificationRow): Promise<StreamRow[]> {
  const selected = await db
    .select()
    .from(connectionStreams)
    .where(and(eq(connectionStreams.connection_id, connection_id), eq(connectionStreams.selected, true)))
    .orderBy(connectionStreams.namespace, connectionStreams.name);
  return selected.filter(({ name }) => stream_names === null || stream_names.includes(name));
}

async function openEnds(
  deps: Deps,
  { connection_id, triggered_by: created_by }: VerificationRow,
  given: Pick<ConnectorHooks, 'signal' | 'cleanUp'>,
): Promise<Ends> {
  const [connection] = await deps.db.select().from(connections).where(eq(connections.id, connection_id));
  if (!connection || connection.deleted_at) throw new ConnectorError('connection_gone', 'The connection was deleted');
  const { source, destination } = await loadSides(deps.db, connection);
  const use = { purpose: 'verification' as const, actor: taskActor({ created_by }) };
  // Statements of a verification are no requests of a run, whose log they would have to be in.
  const hooks = { ...given, use, recorder: UNRECORDED, warn: () => {}, rateLimited: () => {} };
  const from = await onSide('source', () => openConnector(deps, source, hooks));
  const to = await onSide('destination', () => openConnector(deps, destination, hooks));
  const redactor = redactorOf(deps, [source, destination]);
  return { connection, source, from, to, signal: given.signal, redactor };
}

interface Conclusion {
  status: 'succeeded' | 'failed' | 'stopped';
  error?: { code: string; message: string };
}

/** Streams that cannot be compared say so by themselves; a verification of nothing else proves nothing. */
function conclusionOf(streams: readonly VerifiedStream[]): Conclusion {
  if (streams.some(({ status }) => status === 'different')) return { status: 'failed' };
  if (streams.some(({ status }) => status === 'equal')) return { status: 'succeeded' };
  return {
    status: 'failed',
    error: { code: 'nothing_compared', message: 'No stream could be compared. Each names its reason' },
  };
}

async function endBy(deps: Deps, row: VerificationRow, thrown: unknown): Promise<void> {
  if (thrown instanceof VerificationGone) return;
  if (thrown instanceof VerificationStopped) return end(deps, row, { status: 'stopped' });
  const error = thrown instanceof SideError ? thrown.cause : thrown;
  if (error instanceof ConnectorError) {
    return end(deps, row, { status: 'failed', error: { code: error.code, message: error.message } });
  }
  deps.log.error({ err: error, verification_id: row.id }, 'verification failed unexpectedly');
  const message = 'The verification failed because of an internal error. Try again';
  await end(deps, row, { status: 'failed', error: { code: 'internal_error', message } });
}

async function end(deps: Deps, { id }: VerificationRow, { status, error }: Conclusion): Promise<void> {
  await deps.db.transaction(async (tx) => {
    const [row] = await tx
      .update(verifications)
      .set({ status, error: error ?? null, finished_at: sql`clock_timestamp()` })
      .where(and(eq(verifications.id, id), inArray(verifications.status, LIVE_VERIFICATION)))
      .returning();
    if (row && status !== 'stopped') await emitVerificationEvent(tx, row);
  });
}

export const workerKilled = () => ({
  code: 'worker_killed',
  message: `The worker process ended in each of ${MAX_ATTEMPTS} attempts`,
});

/** For verifications whose worker died too often. */
export const failVerification = (deps: Deps, row: VerificationRow): Promise<void> =>
  end(deps, row, { status: 'failed', error: workerKilled() });
