import { z } from 'zod';
import { TriggerAction } from '../../automation/triggers/action-schema.ts';
import { RuleCondition } from '../../automation/rules/condition.ts';
import { MAX_SOURCE_LENGTH } from '../../automation/rules/language.ts';
import { matchesAnyKind } from '../../automation/triggers/event-kinds.ts';
import { instant, name, owner, readOnlyKeys, text, UserReference, whole } from '../../api/wire-types.ts';
import { Severity } from './events-schema.ts';

const rule = () => text(1, MAX_SOURCE_LENGTH);
const WEEK_SECONDS = 604_800;
const DAY_SECONDS = 86_400;

const eventTypes = () =>
  z.array(text(1, 100).refine(matchesAnyKind, 'Unknown event kind')).min(1).max(100).nullable().meta({
    description: 'Limits the trigger to these kinds of event, in addition to the rule. `connection_*` matches several.',
  });

const Expectation = z
  .union([rule(), z.array(text(1, 100).refine(matchesAnyKind, 'Unknown event kind')).min(1).max(100), RuleCondition])
  .meta({ description: 'The event expected in time: a rule, a condition, or kinds of event.' });

const caseSettings = {
  open: z.boolean().meta({ description: 'Whether firings open cases. Default: true.' }),
  resolve_rule: rule().nullable().meta({ description: 'Resolves the case of the same group.' }),
  auto_resolve: z.boolean().meta({
    description: 'Without resolve_rule, the matching recovery event resolves the case. Default: true.',
  }),
  reopen_window_seconds: z
    .int()
    .min(0)
    .max(30 * DAY_SECONDS)
    .meta({ description: 'Default 86400.' }),
  notify_on_resolve: z
    .boolean()
    .meta({ description: 'Also run the actions when the case is resolved. Default: false.' }),
  notify_every: z.int().min(1).max(10_000).nullable().meta({
    description: 'Also run the actions at every n-th event of an open case.',
  }),
};

/** Omitted keys get their default in a new trigger and stay unchanged in an existing one. */
const TriggerCaseRequest = z.strictObject(z.object(caseSettings).partial().shape).meta({ id: 'TriggerCaseRequest' });

const settings = {
  name: name(),
  description: text(0, 2000).nullable(),
  rule: rule().nullable(),
  condition: RuleCondition.nullable(),
  actions: z.array(TriggerAction).min(1).max(20),
  enabled: z.boolean(),
  event_types: eventTypes(),
  severity: Severity,
  threshold: z.int().min(1).max(1000),
  within_seconds: z.int().min(0).max(WEEK_SECONDS),
  posture: z.enum(['reactive', 'proactive']),
  expect: Expectation.nullable(),
  group_by: z.array(text(1, 100)).max(5),
  cooldown_seconds: z.int().min(0).max(WEEK_SECONDS),
  case: TriggerCaseRequest,
  owner: owner(),
};

export const TriggerSchema = z
  .object({
    id: z.string(),
    account_id: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    rule: z.string().nullable().meta({ description: 'As given. Null when there is a condition.' }),
    condition: z.unknown().meta({ description: 'As given. Null when there is a rule.' }),
    normalized_rule: z.string().meta({ description: 'The rule as it is evaluated.' }),
    actions: z.array(z.record(z.string(), z.unknown())).meta({ description: 'As given; secrets are masked.' }),
    enabled: z.boolean(),
    event_types: z.array(z.string()).nullable(),
    matched_kinds: z.array(z.string()).nullable().meta({ description: 'Kinds of event that can match. Null: any.' }),
    severity: Severity,
    threshold: whole(),
    within_seconds: whole(),
    posture: z.enum(['reactive', 'proactive']),
    expect: z.string().nullable().meta({ description: 'The expected event, as a rule.' }),
    group_by: z.array(z.string()),
    cooldown_seconds: whole(),
    case: z.object({
      open: z.boolean(),
      resolve_rule: z.string().nullable(),
      auto_resolve: z.boolean(),
      reopen_window_seconds: whole(),
      notify_on_resolve: z.boolean(),
      notify_every: whole().nullable(),
    }),
    owner: z.string().nullable(),
    is_system: z.boolean(),
    state: z.enum(['idle', 'pending', 'triggered', 'cooldown', 'errored', 'auto_disabled']),
    last_evaluated_at: instant().nullable(),
    last_fired_at: instant().nullable(),
    fire_count: whole(),
    error_count: whole(),
    last_error: z.string().nullable(),
    open_cases_count: whole(),
    created_by: UserReference.nullable(),
    created_at: instant(),
    updated_at: instant(),
  })
  .meta({ id: 'TriggerSchema' });
export type TriggerSchema = z.infer<typeof TriggerSchema>;

export const CreateTriggerRequest = z
  .strictObject({ ...z.object(settings).partial().shape, name: settings.name, actions: settings.actions })
  .refine((body) => (body.rule == null) !== (body.condition == null), {
    message: 'Exactly one of rule and condition is required',
    path: ['rule'],
  })
  .meta({
    id: 'CreateTriggerRequest',
    examples: [
      {
        name: 'Pause failing connections',
        rule: 'event == "connection_failed" && retry_count > 3',
        actions: [{ type: 'pause_connection' }],
      },
    ],
  });
export type CreateTriggerRequest = z.infer<typeof CreateTriggerRequest>;

export const UpdateTriggerRequest = z
  .strictObject({
    ...z.object(settings).partial().shape,
    actions: z.array(TriggerAction).max(20).optional(),
    ...readOnlyKeys(TriggerSchema, settings),
  })
  .refine((body) => body.rule == null || body.condition == null, {
    message: 'Only one of rule and condition is allowed',
    path: ['rule'],
  })
  .refine((body) => Object.values(body).some((value) => value !== undefined), 'At least one field is required')
  .meta({ id: 'UpdateTriggerRequest', examples: [{ enabled: false }, { threshold: 3, within_seconds: 3600 }] });
export type UpdateTriggerRequest = z.infer<typeof UpdateTriggerRequest>;
