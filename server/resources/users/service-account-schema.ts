import { z } from 'zod';
import { count, idInBody, instant, name } from '../../api/wire-types.ts';

export const CreateServiceAccountRequest = z
  .strictObject({ name: name(), role_ids: z.array(idInBody()).max(100).default([]) })
  .meta({ id: 'CreateServiceAccountRequest', examples: [{ name: 'Deployment' }] });
export type CreateServiceAccountRequest = z.infer<typeof CreateServiceAccountRequest>;

/** A program that uses the API with keys and roles of its own. */
export const ServiceAccountSchema = z
  .object({
    id: z.string().meta({ description: 'Also its user id, for roles, keys, disabling and deletion.' }),
    name: z.string(),
    is_active: z.boolean(),
    roles: z.array(z.object({ id: z.string(), name: z.string() })),
    live_keys: count(),
    last_used_at: instant().nullable(),
    created_at: instant(),
  })
  .meta({ id: 'ServiceAccountSchema' });
export type ServiceAccountSchema = z.infer<typeof ServiceAccountSchema>;
