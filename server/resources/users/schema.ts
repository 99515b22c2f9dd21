import { z } from 'zod';
import { PERMISSIONS } from '../../api/permissions.ts';
import { NotificationPreferences, UpdateNotificationPreferences } from './notification-preferences.ts';
import { day, idInBody, instant, name, readOnlyKeys, text, timeZone, whole } from '../../api/wire-types.ts';

const uuid = () => z.string().meta({ format: 'uuid' });

/** Onboarding steps in display order. */
export const ONBOARDING_STEPS = [
  'profile',
  'add_source',
  'add_destination',
  'create_connection',
  'first_run',
  'invite_user',
  'create_trigger',
] as const;

const MAX_ONBOARDING_DATA_BYTES = 8192;

export const OnboardingStateResponse = z
  .object({
    completed_steps: z.array(z.enum(ONBOARDING_STEPS)),
    current_step: z.string().nullable(),
    dismissed: z.boolean(),
    data: z.record(z.string(), z.unknown()),
    is_complete: z.boolean().meta({ description: 'Whether all steps are completed.' }),
    completed_at: instant().nullable(),
    updated_at: instant(),
    progress_percent: whole().meta({ minimum: 0, maximum: 100 }),
  })
  .meta({ id: 'OnboardingStateResponse' });
export type OnboardingStateResponse = z.infer<typeof OnboardingStateResponse>;

const onboarding = {
  completed_steps: z.array(z.enum(ONBOARDING_STEPS)).max(100),
  current_step: text(1, 100).nullish(),
  dismissed: z.boolean().default(false),
  data: z
    .record(z.string(), z.unknown())
    .default({})
    .refine(
      (data) => Buffer.byteLength(JSON.stringify(data)) <= MAX_ONBOARDING_DATA_BYTES,
      `Should have at most ${MAX_ONBOARDING_DATA_BYTES} bytes as JSON`,
    )
    .meta({ description: `Whatever the caller keeps; at most ${MAX_ONBOARDING_DATA_BYTES} bytes as JSON.` }),
};

export const OnboardingStateSchema = z
  .strictObject({ ...onboarding, ...readOnlyKeys(OnboardingStateResponse, onboarding) })
  .meta({ id: 'OnboardingStateSchema', examples: [{ completed_steps: ['profile'], current_step: 'add_source' }] });
export type OnboardingStateSchema = z.infer<typeof OnboardingStateSchema>;

const user = {
  id: uuid(),
  account_id: uuid(),
  email: z.string(),
  full_name: z.string(),
  status: z.enum(['invited', 'active', 'disabled']),
  is_active: z.boolean(),
  avatar_url: z.string().nullable().meta({ description: 'Path on this server. Changes with each upload.' }),
  timezone: z.string().nullable(),
  locale: z.string().nullable(),
  roles: z.array(z.object({ id: uuid(), name: z.string() })).meta({ description: 'Ordered by name.' }),
  last_login_at: instant().nullable(),
  last_api_request_at: instant().nullable(),
  invited_by: uuid().nullable(),
  invited_at: instant().nullable(),
  invite_link: z.string().nullable().meta({
    description: 'Path of the page that accepts the invitation, once, within 7 days. Returned only when it is created.',
  }),
  created_at: instant(),
  updated_at: instant(),
};

export const UserSchema = z.object(user).meta({ id: 'UserSchema' });
export type UserSchema = z.infer<typeof UserSchema>;

export const UserSchemaWithMeTagged = z.object({ ...user, is_me: z.boolean() }).meta({ id: 'UserSchemaWithMeTagged' });
export type UserSchemaWithMeTagged = z.infer<typeof UserSchemaWithMeTagged>;

export const ExpandedUserSchema = z
  .object({
    ...user,
    is_me: z.literal(true),
    permissions: z.array(z.enum(PERMISSIONS)).meta({ description: 'Combined permissions of all roles.' }),
    account: z.object({
      id: uuid(),
      name: z.string(),
      plan: z.object({ id: z.string(), name: z.string() }),
      billing_period: z.object({ start: day(), end: day() }).meta({ description: 'UTC days, both inclusive.' }),
      timezone: z.string(),
    }),
    onboarding_state: OnboardingStateResponse,
    api_key: z
      .object({
        prefix: z.string(),
        created_at: instant(),
        expires_at: instant(),
        last_used_at: instant().nullable(),
        days_remaining: z.number().meta({ type: 'integer', description: 'Whole days until the key expires.' }),
      })
      .nullable()
      .meta({
        description:
          'The key of this call. The key itself is returned only when it is created. Null: a session of a sign-in by a provider; calls over REST always have a key.',
      }),
    notification_preferences: NotificationPreferences,
  })
  .meta({ id: 'ExpandedUserSchema' });
export type ExpandedUserSchema = z.infer<typeof ExpandedUserSchema>;

const locale = () => text(1, 35).refine(isLocale, 'Not a valid BCP 47 language tag');

function isLocale(value: string): boolean {
  try {
    return Intl.getCanonicalLocales(value).length === 1;
  } catch {
    return false;
  }
}

const roleIds = () => z.array(idInBody()).max(100);

export const CreateUserRequest = z
  .strictObject({
    email: z.email().max(254).toLowerCase(),
    full_name: name(),
    role_ids: roleIds().optional().meta({ description: 'Default: the role Viewer.' }),
    send_invitation: z.boolean().default(true).meta({
      description: 'Creates the invitation link for the caller to pass on; it can also be created later.',
    }),
    timezone: timeZone().nullish(),
  })
  .meta({ id: 'CreateUserRequest', examples: [{ email: 'ada@example.org', full_name: 'Ada Lovelace' }] });
export type CreateUserRequest = z.infer<typeof CreateUserRequest>;

const updates = {
  full_name: name().optional(),
  timezone: timeZone().nullish(),
  locale: locale().nullish(),
  role_ids: roleIds().optional().meta({ description: 'All roles that the user shall have.' }),
  is_active: z.boolean().optional().meta({ description: 'false disables the user and their keys.' }),
  notification_preferences: UpdateNotificationPreferences.optional(),
  email: z.string().optional().meta({ description: 'Cannot be changed; only its present value is taken.' }),
};

export const UpdateUserRequest = z
  .strictObject({ ...updates, ...readOnlyKeys(UserSchema, updates) })
  .refine((body) => Object.values(body).some((value) => value !== undefined), 'At least one field is required')
  .meta({ id: 'UpdateUserRequest', examples: [{ full_name: 'Ada King' }] });
export type UpdateUserRequest = z.infer<typeof UpdateUserRequest>;
