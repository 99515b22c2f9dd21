import { SideError } from '../../connector-runtime/side-error.ts';
import {
  AuthenticationError,
  ConfigurationError,
  ConnectorError,
  DataError,
  FencedError,
} from '../../connectors/contract/errors.ts';
import type { StreamState } from '../../connectors/contract/connector.ts';
import { parkStream } from '../../runs/park-stream.ts';
import type { Attempt } from '../attempt.ts';

/** Errors that another table or a setting of the destination causes, after which the changes can still be applied. */
const RESTORED: readonly string[] = [
  'permission_denied',
  'database_not_found',
  'schema_not_found',
  'foreign_key_violation',
];

/**
 * Errors of a source after which the log no longer has the stream's changes. Others, such as a server that was set back,
 * may be a wrong address.
 */
const NOT_IN_LOG: readonly string[] = [
  'publication_missing',
  'publication_altered',
  'replica_identity_insufficient',
  'binlog_purged',
  'binlog_row_image_not_full',
  'changes_not_logged',
  'key_not_in_log',
  'table_replaced',
  'xa_transaction',
];

export const RESET_HINT = "Reset the stream's cursor so that the next run reads the whole table again";

/**
 * Leaves a stream behind whose changes cannot be applied: the source need not keep its log for it. What the log has of
 * it until then is lost, so it continues with a read of its table only.
 */
export async function parkIfUnappliable(attempt: Attempt, thrown: unknown): Promise<void> {
  if (!(thrown instanceof SideError) || !(thrown.cause instanceof ConnectorError)) return;
  if (parkingOf(attempt)) return;
  const { cause: error, origin } = thrown;
  if (error.retryable || error instanceof FencedError || error instanceof AuthenticationError) return;
  const isUnappliable = origin === 'destination' ? !RESTORED.includes(error.code) : NOT_IN_LOG.includes(error.code);
  if (!isUnappliable) return;
  const { claim, deps, redactor } = attempt;
  const message = redactor.text(error.message);
  const parked = { at: deps.now().toISOString(), code: error.code, message, origin };
  if (!(await parkStream(deps.db, claim, parked))) return;
  attempt.warn(
    'stream_parked',
    `${claim.stream.name} is parked: the others go on, and its changes are not kept from now on. After you have solved the problem, reset the stream's cursor to read its table again`,
  );
}

/** @throws SideError with the reason, if the stream was left behind */
export function refuseParked(attempt: Attempt): void {
  const parked = parkingOf(attempt);
  if (!parked) return;
  const { at, code, message, origin } = parked;
  const text = message.includes(RESET_HINT) ? '' : ` ${RESET_HINT}`;
  const known = `${message}${message.endsWith('.') ? '' : '.'}${text}. The stream is parked since ${at.slice(0, 19)}Z`;
  throw new SideError(origin, errorOf(code, known));
}

const errorOf = (code: string, message: string) =>
  /_(value|violation|key)$/.test(code) ? new DataError(code, message) : new ConfigurationError(code, message);

const parkingOf = ({ claim }: Attempt) => ((claim.stream.state ?? {}) as Partial<StreamState>).parked;
