import type { Ctx } from '../../api/procedure.ts';
import { ApiError } from '../../platform/errors.ts';

/**
 * A session is a cookie in a browser that may be left open, and a key outlives it. So whatever creates a key needs the API
 * key again, within the last five minutes, or a sign-in within the last ten. Calls with the key itself need nothing.
 * @throws ApiError 403 `confirmation_required`
 */
export function requireConfirmed({ deps, principal }: Pick<Ctx, 'deps' | 'principal'>): void {
  requireRecentSignIn({ deps, principal });
  if (!principal.session || principal.session.confirmed) return;
  throw new ApiError(403, 'confirmation_required', 'Enter the API key of this session again to continue');
}

/**
 * A person who signed in with a provider must have done so just now to change credentials.
 * @throws ApiError 403 `confirmation_required` with `sign_in_path`
 */
export function requireRecentSignIn({ deps, principal }: Pick<Ctx, 'deps' | 'principal'>): void {
  const { provider = null, confirmed } = principal.session ?? {};
  if (provider === null || confirmed) return;
  throw new ApiError(403, 'confirmation_required', 'Sign in again to continue: your last sign-in was too long ago', {
    sign_in_path: `${deps.config.BASE_PATH}/console/sign-in/${provider}?confirm=1`,
  });
}
