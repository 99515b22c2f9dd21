import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { act, read, router, write } from '../../api/procedure.ts';
import { PageQuery } from '../../api/wire-types.ts';
import { caseProcedures } from './cases-router.ts';
import { evaluateAutomatorRule } from './evaluate.ts';
import { EvaluateRequest, EvaluateResponse } from './evaluate-schema.ts';
import { listEvents } from './events.ts';
import { EventQuery, EventSchema } from './events-schema.ts';
import { notificationProcedures } from './notifications-router.ts';
import { readRuleLanguage, RuleLanguage } from './rule-language.ts';
import { getTrigger, listTriggers } from './triggers-query.ts';
import { CreateTriggerRequest, TriggerSchema, UpdateTriggerRequest } from './triggers-schema.ts';
import { createTrigger, deleteTrigger, updateTrigger } from './triggers-write.ts';

const TriggerQuery = PageQuery.extend({
  include_system: z.boolean().default(false).meta({ description: 'Include the built-in triggers.' }),
});

export const automationRouter = router({
  evaluateRule: read
    .concat(
      rest('POST', '/automation/evaluate_automator_rule', {
        operation_id: 'evaluate_automator_rule',
        summary: 'Test a rule against an event; an invalid rule is answered with position and reason',
        description:
          'Against the given event, a stored one, a sample of a kind, or the newest stored events. Nothing fires.',
        body: EvaluateRequest,
        errors: [404],
      }),
    )
    .output(EvaluateResponse)
    .mutation(({ ctx, input }) => evaluateAutomatorRule(ctx, input)),
  ruleLanguage: read
    .concat(
      rest('GET', '/automation/rule_language', {
        operation_id: 'get_rule_language',
        summary: 'Get variables, functions and limits of the rule language',
        description: 'What an editor of rules needs for completion.',
        addition: true,
      }),
    )
    .output(RuleLanguage)
    .query(() => readRuleLanguage()),
  listEvents: read
    .concat(
      rest('GET', '/automation/events', {
        operation_id: 'list_events',
        summary: 'List events, newest first',
        description: 'With `after`, oldest first from that event on, for clients that follow all events.',
        query: EventQuery,
        errors: [400],
      }),
    )
    .output(z.array(EventSchema))
    .query(({ ctx, input }) => listEvents(ctx, input)),
  listTriggers: read
    .concat(
      rest('GET', '/automation/triggers', {
        operation_id: 'list_triggers',
        summary: 'List triggers, newest first',
        description: 'Without `limit`, all of them. Built-in triggers only with `include_system`.',
        query: TriggerQuery,
      }),
    )
    .output(z.array(TriggerSchema))
    .query(({ ctx, input }) => listTriggers(ctx, input)),
  createTrigger: act('triggers.create')
    .concat(
      rest('POST', '/automation/triggers', {
        operation_id: 'create_trigger',
        summary: 'Create a trigger',
        description:
          'Needs exactly one of `rule` and `condition`. Rules are checked against the variables of the events that they match.',
        status: 201,
        body: CreateTriggerRequest,
        errors: [400, 402],
      }),
    )
    .output(TriggerSchema)
    .mutation(({ ctx, input }) => createTrigger(ctx, input)),
  getTrigger: read
    .concat(
      rest('GET', '/automation/triggers/{trigger_id}', {
        operation_id: 'get_trigger',
        summary: 'Get a trigger',
        description: 'Secrets of actions are masked.',
      }),
    )
    .output(TriggerSchema)
    .query(({ ctx, input }) => getTrigger(ctx, input)),
  updateTrigger: act('triggers.update')
    .concat(
      rest('POST', '/automation/triggers/{trigger_id}', {
        operation_id: 'update_trigger',
        summary: 'Edit, enable or disable a trigger',
        description:
          'Omitted keys stay unchanged. A changed rule restarts the counting. Of a built-in trigger, only `enabled` and `actions` can be changed.',
        body: UpdateTriggerRequest,
        errors: [400],
      }),
    )
    .output(TriggerSchema)
    .mutation(({ ctx, input }) => updateTrigger(ctx, input)),
  deleteTrigger: write('triggers.delete')
    .concat(
      rest('DELETE', '/automation/triggers/{trigger_id}', {
        operation_id: 'delete_trigger',
        summary: 'Delete a trigger and resolve its cases',
        description: 'Pending deliveries are cancelled. Built-in triggers cannot be deleted, only disabled.',
        status: 204,
        errors: [400],
      }),
    )
    .output(z.void())
    .mutation(({ ctx, input }) => deleteTrigger(ctx, input)),
  ...notificationProcedures,
  ...caseProcedures,
});
