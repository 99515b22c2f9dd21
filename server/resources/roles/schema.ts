import { z } from 'zod';
import { PERMISSIONS } from '../../api/permissions.ts';
import { instant, readOnlyKeys, text } from '../../api/wire-types.ts';

export const Permission = z.enum(PERMISSIONS).meta({ id: 'Permission' });

export const RoleSchema = z
  .object({
    id: z.string().meta({ format: 'uuid' }),
    account_id: z.string().meta({ format: 'uuid' }).nullable().meta({ description: 'Null for system roles.' }),
    name: z.string(),
    description: z.string().nullable(),
    is_system: z.boolean(),
    permissions: z.array(Permission),
    users_count: z.number().meta({ type: 'integer', minimum: 0 }),
    user_ids: z
      .array(z.string().meta({ format: 'uuid' }))
      .nullable()
      .meta({ description: 'Sorted by name. Null in lists.' }),
    created_at: instant(),
    updated_at: instant(),
  })
  .meta({ id: 'RoleSchema' });
export type RoleSchema = z.infer<typeof RoleSchema>;

const settings = {
  name: text(1, 100).trim().min(1),
  description: text(0, 2000).nullish(),
  permissions: z.array(Permission).min(1).max(100),
};

export const CreateRequest = z.strictObject(settings).meta({
  id: 'CreateRequest',
  examples: [{ name: 'Operator', description: 'Runs pipelines', permissions: ['connections.run'] }],
});
export type CreateRequest = z.infer<typeof CreateRequest>;

export const UpdateRequest = z
  .strictObject({ ...z.object(settings).partial().shape, ...readOnlyKeys(RoleSchema, settings) })
  .refine((body) => Object.values(body).some((value) => value !== undefined), 'At least one field is required')
  .meta({ id: 'UpdateRequest', examples: [{ permissions: ['connections.run', 'cases.update'] }] });
export type UpdateRequest = z.infer<typeof UpdateRequest>;
