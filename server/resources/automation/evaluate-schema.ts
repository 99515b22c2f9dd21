import { z } from 'zod';
import { whole } from '../../api/wire-types.ts';
import { RuleCondition } from '../../automation/rules/condition.ts';
import { RULE_ERROR_CODES } from '../../automation/rules/errors.ts';
import { EventType } from './events-schema.ts';

const MAX_EVENTS = 200;
/** Longer than a rule may be: the tester reports a rule that is too long, the request stays valid. */
const MAX_TEXT = 100_000;

export const EvaluateRequest = z
  .strictObject({
    rule: z.string().max(MAX_TEXT).optional(),
    condition: RuleCondition.optional(),
    event: z
      .record(z.string().max(100), z.unknown())
      .optional()
      .meta({ description: 'Variables of an event, such as `{"event": "connection_failed", "retry_count": 3}`.' }),
    event_id: z.string().optional().meta({ description: 'A stored event.' }),
    event_type: EventType.optional().meta({
      description: 'Tests against a sample event of this kind, or with `limit` against stored events of it.',
    }),
    limit: z
      .int()
      .min(1)
      .max(MAX_EVENTS)
      .optional()
      .meta({ description: 'Tests against this many of the newest stored events.' }),
  })
  .refine((body) => (body.rule === undefined) !== (body.condition === undefined), {
    message: 'Exactly one of rule and condition is required',
    path: ['rule'],
  })
  .refine((body) => [body.event, body.event_id, body.event_type].filter((one) => one !== undefined).length <= 1, {
    message: 'Only one of event, event_id and event_type is allowed',
    path: ['event'],
  })
  .refine((body) => body.limit === undefined || (body.event === undefined && body.event_id === undefined), {
    message: 'limit applies to stored events only',
    path: ['limit'],
  })
  .meta({
    id: 'EvaluateRequest',
    examples: [
      {
        rule: 'event == "connection_failed" && retry_count > 3',
        event: { event: 'connection_failed', retry_count: 4 },
      },
      { rule: 'event == "connection_failed"', event_type: 'connection_failed' },
    ],
  });
export type EvaluateRequest = z.infer<typeof EvaluateRequest>;

export const RulePosition = z
  .object({
    line: whole().meta({ description: 'From 1.' }),
    column: whole().meta({ description: 'From 1.' }),
    offset: whole().meta({ description: 'Offset in characters, from 0.' }),
  })
  .meta({ id: 'RulePosition' });

export const EvaluateResponse = z
  .object({
    is_valid: z.boolean().meta({ description: 'Whether a trigger could have this rule.' }),
    result: z
      .boolean()
      .nullable()
      .meta({ description: 'For several events, whether any matched. Null when none was evaluated.' }),
    result_type: z.string().nullable(),
    error: z
      .object({ code: z.enum(RULE_ERROR_CODES), message: z.string(), position: RulePosition.nullable() })
      .nullable(),
    normalized_rule: z.string().nullable().meta({ description: 'The rule as it would be stored.' }),
    matched_kinds: z
      .array(z.string())
      .nullable()
      .meta({ description: 'Kinds of event that the rule can match. Null: any.' }),
    variables_used: z.array(z.string()),
    functions_used: z.array(z.string()),
    unknown_variables: z.array(z.string()),
    matched_event_ids: z.array(z.string()).nullable().meta({ description: 'Of stored events, newest first.' }),
    evaluated_count: whole(),
    duration_ms: z.number().meta({ description: 'Duration of the evaluations.' }),
    warnings: z.array(z.string()),
  })
  .meta({ id: 'EvaluateResponse' });
export type EvaluateResponse = z.infer<typeof EvaluateResponse>;
