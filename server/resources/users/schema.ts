import { z } from 'zod';
import { PERMISSIONS } from '../../permissions.ts';
import { day, instant } from '../wire.ts';

const uuid = () => z.string().meta({ format: 'uuid' });

/** Steps of the introduction, in the order in which they are offered. */
export const ONBOARDING_STEPS = [
  'profile',
  'add_source',
  'add_destination',
  'create_connection',
  'first_run',
  'invite_user',
  'create_trigger',
] as const;

const OnboardingStateResponse = z
  .object({
    completed_steps: z.array(z.enum(ONBOARDING_STEPS)),
    current_step: z.string().nullable(),
    dismissed: z.boolean(),
    data: z.record(z.string(), z.unknown()),
    is_complete: z.boolean(),
    completed_at: instant().nullable(),
    updated_at: instant(),
    progress_percent: z.number().meta({ minimum: 0, maximum: 100 }),
  })
  .meta({ id: 'OnboardingStateResponse' });
export type OnboardingStateResponse = z.infer<typeof OnboardingStateResponse>;

const user = {
  id: uuid(),
  account_id: uuid(),
  email: z.string(),
  full_name: z.string(),
  status: z.enum(['invited', 'active', 'disabled']),
  is_active: z.boolean(),
  avatar_url: z.string().nullable(),
  timezone: z.string().nullable(),
  locale: z.string().nullable(),
  roles: z.array(z.object({ id: uuid(), name: z.string() })).meta({ description: 'Ordered by name.' }),
  last_login_at: instant().nullable(),
  last_api_request_at: instant().nullable(),
  invited_by: uuid().nullable(),
  invited_at: instant().nullable(),
  created_at: instant(),
  updated_at: instant(),
};

export const ExpandedUserSchema = z
  .object({
    ...user,
    is_me: z.literal(true),
    permissions: z.array(z.enum(PERMISSIONS)).meta({ description: 'What all roles together allow.' }),
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
      .meta({ description: 'The key of this call. The key itself is shown once, when it is made.' }),
    notification_preferences: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'ExpandedUserSchema' });
export type ExpandedUserSchema = z.infer<typeof ExpandedUserSchema>;
