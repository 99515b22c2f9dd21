import { ConfigurationError } from '../../../../contract/errors.ts';
import type { CheckStep } from '../check-steps.ts';
import { SessionPool } from '../folders/session-pool.ts';
import { type SftpContext, SftpSession } from './session.ts';

export const pool = new SessionPool<SftpContext, SftpSession>((ctx) => SftpSession.open(ctx));

/** Servers take requests of this size; more in flight than one hides the time that a request travels. */
export const REQUEST_BYTES = 32 << 10;

export const loginStep = (ctx: SftpContext): CheckStep => [
  'Login',
  '',
  () => pool.use(ctx, async ({ host_key }) => `Host key ${host_key}`),
];

/** Null in place of the error for a file or folder that does not exist. */
export function missing(error: unknown): null {
  if (error instanceof ConfigurationError && error.code === 'file_not_found') return null;
  throw error;
}
