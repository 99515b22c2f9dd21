import { z } from 'zod';
import { idInBody, instant } from '../../api/wire-types.ts';

export const ConfirmSessionRequest = z.strictObject({ api_key: z.string().trim().min(1).max(512) });

/** Default: the caller's own sessions. */
export const ListSessionsRequest = z.strictObject({ user_id: idInBody().optional() });

/** A session of the web console. */
export const SessionSchema = z.object({
  id: z.string(),
  key_prefix: z.string().nullable().meta({ description: 'Of the API key that it belongs to. Null: `provider`.' }),
  provider: z.string().nullable().meta({ description: 'The provider of the sign-in. Null: an API key.' }),
  is_current: z.boolean().meta({ description: 'Whether the call uses this session.' }),
  created_at: instant(),
  last_used_at: instant(),
  expires_at: instant(),
});
export type SessionSchema = z.infer<typeof SessionSchema>;
