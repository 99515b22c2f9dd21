import { z } from 'zod';
import { idInBody, instant } from '../../api/wire-types.ts';

export const ConfirmSessionRequest = z.strictObject({ api_key: z.string().trim().min(1).max(512) });

/** Default: the caller's own sessions. */
export const ListSessionsRequest = z.strictObject({ user_id: idInBody().optional() });

export const EndSessionRequest = z.strictObject({ session_id: idInBody() });

/** A session of the web console. */
export const SessionSchema = z.object({
  id: z.string(),
  /** Of the API key that it belongs to. */
  key_prefix: z.string(),
  /** Whether the call uses this session. */
  is_current: z.boolean(),
  created_at: instant(),
  last_used_at: instant(),
  expires_at: instant(),
});
export type SessionSchema = z.infer<typeof SessionSchema>;
