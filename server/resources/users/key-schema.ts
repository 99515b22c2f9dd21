import { z } from 'zod';
import { PERMISSIONS } from '../../api/permissions.ts';
import { idInBody, instant, name } from '../../api/wire-types.ts';
import { UserSchema } from './schema.ts';

export const ApiKeySchema = z.object({
  id: z.string(),
  user_id: z.string(),
  prefix: z.string(),
  name: z.string().nullable().meta({ description: 'What uses the key. Null: the key with which the user signs in.' }),
  scopes: z
    .array(z.string())
    .nullable()
    .meta({ description: 'The permissions that the key may use, of those that its user has. Null: all.' }),
  status: z.enum(['live', 'expired', 'revoked']),
  /** Whether this key authenticates the request. */
  is_current: z.boolean(),
  created_at: instant(),
  expires_at: instant(),
  revoked_at: instant().nullable(),
  last_used_at: instant().nullable(),
});
export type ApiKeySchema = z.infer<typeof ApiKeySchema>;

/** The key in plain text, returned only once. */
export const NewApiKey = z.object({
  id: z.string(),
  api_key: z.string(),
  prefix: z.string(),
  created_at: instant(),
  expires_at: instant(),
});
export type NewApiKey = z.infer<typeof NewApiKey>;

export const RotateKeyRequest = z
  .strictObject({
    /** How long the previous key still works, at most until its own expiry. */
    grace_hours: z.int().min(0).max(168).default(24),
  })
  .meta({ id: 'RotateKeyRequest', examples: [{ grace_hours: 24 }] });

export const CreateKeyRequest = z
  .strictObject({
    name: name().meta({ description: 'What uses the key.' }),
    scopes: z
      .array(z.enum(PERMISSIONS))
      .min(1)
      .max(100)
      .nullable()
      .default(null)
      .meta({ description: 'Permissions that the key may use, of those that its user has. Null: all of them.' }),
    expires_in_days: z.int().min(1).max(365).default(90),
    user_id: idInBody().optional().meta({ description: 'A service account. Default: the caller.' }),
  })
  .meta({ id: 'CreateKeyRequest', examples: [{ name: 'Nightly deployment', scopes: ['connections.run'] }] });
export type CreateKeyRequest = z.infer<typeof CreateKeyRequest>;

export const RotatedKey = NewApiKey.extend({
  previous: z.object({ id: z.string(), prefix: z.string(), expires_at: instant() }),
});
export type RotatedKey = z.infer<typeof RotatedKey>;

/** Default: the caller's own keys. */
export const ListKeysRequest = z.strictObject({ user_id: idInBody().optional() });

export const RevokeKeyRequest = z.strictObject({ key_id: idInBody() });

export const Invitation = z.object({ user_id: z.string(), invite_link: z.string(), expires_at: instant() });
export type Invitation = z.infer<typeof Invitation>;

export const AcceptInvitationRequest = z
  .strictObject({ token: z.string().min(1).max(200) })
  .meta({ id: 'AcceptInvitationRequest', examples: [{ token: 'the part of the link after #token=' }] });

export const AcceptedInvitation = NewApiKey.extend({ user: UserSchema });
export type AcceptedInvitation = z.infer<typeof AcceptedInvitation>;
