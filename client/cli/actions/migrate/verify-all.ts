import { CommandError } from '../../exit.ts';
import { followVerification, nameOf, type Verification } from '../verify.ts';
import type { Migration } from './migration.ts';

/**
 * Verifies all streams.
 * @param isQuiet the source should not be written to. Null: rows have changed nevertheless
 * @throws CommandError when a stream differs, or cannot be compared
 */
export async function verifyAll(
  { cli, api, connection }: Migration,
  { isQuiet }: { isQuiet: boolean },
): Promise<Verification | null> {
  const verification_id = await api.verifications.start.mutate({ connection_id: connection.id, request: {} });
  const ended = await followVerification(cli, api, verification_id, isQuiet ? 20 : 500);
  const left_out = ended.streams.filter(({ status }) => status === 'not_compared');
  if (ended.error) throw new CommandError('failed', `${ended.error.message} (${ended.error.code})`);
  if (ended.status === 'stopped') throw new CommandError('stopped', 'Verification stopped');
  if (left_out.length > 0) {
    const names = left_out.map((one) => `${nameOf(one)}: ${one.reason?.message ?? 'unknown'}`);
    throw new CommandError('failed', `Not all streams can be compared. ${names.join('; ')}`);
  }
  if (isQuiet && ended.streams.some(({ changed_since }) => changed_since > 0)) return null;
  const different = ended.streams.filter(({ status }) => status !== 'equal').map(nameOf);
  if (different.length === 0) return ended;
  throw new CommandError(
    'failed',
    `Source and destination differ in ${different.join(', ')}. Run \`verify "${connection.name}" --repair\`, then repeat the command`,
  );
}
