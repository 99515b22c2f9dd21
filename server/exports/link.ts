import { timingSafeEqual } from 'node:crypto';
import type { Deps } from '../deps.ts';

/** Lifetime of an export's file. */
export const EXPORT_HOURS = 24;
const LINK_MINUTES = 10;

/**
 * Signs a download link. It needs no API key, so it is created on request, for a caller with the permission, and works
 * for ten minutes.
 */
export function signedExportUrl(deps: Deps, task_id: string): { url: string; expires_at: string } {
  const expires = Math.floor(deps.now().getTime() / 1000) + LINK_MINUTES * 60;
  const [signature] = signatures(deps, task_id, String(expires));
  return {
    url: `${deps.config.PUBLIC_URL}/exports/${task_id}?expires=${expires}&signature=${signature}`,
    expires_at: new Date(expires * 1000).toISOString(),
  };
}

/** Whether the query carries a valid signature that has not expired. */
export function isSignedExport(deps: Deps, task_id: string, query: URLSearchParams): boolean {
  const expires = query.get('expires') ?? '';
  if (!/^\d{1,12}$/.test(expires) || Number(expires) * 1000 <= deps.now().getTime()) return false;
  const given = Buffer.from(query.get('signature') ?? '');
  return signatures(deps, task_id, expires).some((one) => {
    const expected = Buffer.from(one);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

const signatures = (deps: Deps, task_id: string, expires: string) =>
  deps.secrets.hmacs('export_url', `${task_id}.${expires}`);
