import { and, desc, eq } from 'drizzle-orm';
import { events } from '../../../db/schema/index.ts';
import { conditionSource } from '../../automation/rules/condition.ts';
import type { AcceptedRule, RejectedRule } from '../../automation/rules/rule-trial.ts';
import { sampleFacts } from '../../automation/rules/sample-facts.ts';
import { tryRule } from '../../automation/rules/try-rule.ts';
import { eventFacts, isStatistic } from '../../events/variables.ts';
import { notFound } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { isId } from '../../api/wire-types.ts';
import type { EvaluateRequest, EvaluateResponse } from './evaluate-schema.ts';

/** Tests a rule as the engine would run it. An invalid rule is a normal result; an unknown `event_id` is an error. */
export async function evaluateAutomatorRule(ctx: Ctx, input: EvaluateRequest): Promise<EvaluateResponse> {
  const tested = await testedEvents(ctx, input);
  const source = input.condition ? conditionSource(input.condition) : (input.rule ?? '');
  const trial = await tryRule(ctx.principal.account_id, { source, events: tested.map(({ facts }) => facts) });
  if ('rejected' in trial) return refused(trial.rejected);
  return { ...describe(trial.accepted), ...results(trial.accepted, tested) };
}

interface TestedEvent {
  facts: Record<string, unknown>;
  /** Id of a stored event. */
  id: string | null;
}

async function testedEvents(ctx: Ctx, input: EvaluateRequest): Promise<TestedEvent[]> {
  const { event, event_id, event_type, limit } = input;
  const mine = eq(events.account_id, ctx.principal.account_id);
  if (event) return [{ facts: event, id: null }];
  if (event_id !== undefined) {
    const [row] = isId(event_id)
      ? await ctx.db
          .select()
          .from(events)
          .where(and(mine, eq(events.id, event_id)))
      : [];
    if (!row) throw notFound('Event');
    return [{ facts: eventFacts(row), id: row.id }];
  }
  if (limit !== undefined) {
    const rows = await ctx.db
      .select()
      .from(events)
      .where(and(mine, event_type && eq(events.event, event_type)))
      .orderBy(desc(events.occurred_at), desc(events.id))
      .limit(limit);
    return rows.map((row) => ({ facts: eventFacts(row), id: row.id }));
  }
  return event_type ? [{ facts: sampleFacts(event_type), id: null }] : [];
}

const describe = (rule: AcceptedRule) => ({
  is_valid: true,
  result_type: 'bool',
  normalized_rule: rule.normalized,
  matched_kinds: rule.kinds,
  variables_used: rule.variables,
  functions_used: rule.functions,
  unknown_variables: [],
});

function results(rule: AcceptedRule, tested: TestedEvent[]) {
  const { outcomes, duration_ms } = rule;
  const matched = tested.filter((_, at) => outcomes[at]?.matched);
  const failures = outcomes.flatMap(({ error }) => error ?? []);
  const all_failed = tested.length > 0 && failures.length === tested.length;
  return {
    result: tested.length === 0 || all_failed ? null : matched.length > 0,
    error: failures[0] ?? null,
    matched_event_ids: tested.some(({ id }) => id !== null) ? matched.flatMap(({ id }) => id ?? []) : null,
    evaluated_count: tested.length,
    duration_ms: Math.round(duration_ms * 1000) / 1000,
    warnings: [
      ...warningsOf(rule),
      ...(failures.length > 0 ? [`Evaluation failed for ${failures.length} of ${tested.length} events`] : []),
    ],
  };
}

function warningsOf(rule: AcceptedRule): string[] {
  const warnings = rule.unknown_kinds.map((kind) => `Unknown event kind "${kind}" can never match`);
  if (rule.kinds === null) warnings.push('The rule does not name an event kind and is evaluated for every event');
  else if (rule.kinds.length === 0) warnings.push('The rule can never match');
  for (const name of rule.variables.filter(isStatistic)) {
    warnings.push(`${name} is null until the connection has enough runs, and comparisons with null do not match`);
  }
  return warnings;
}

const refused = (rule: RejectedRule): EvaluateResponse => ({
  is_valid: false,
  result: null,
  result_type: rule.result_type,
  error: rule.error,
  normalized_rule: null,
  matched_kinds: null,
  variables_used: rule.variables,
  functions_used: rule.functions,
  unknown_variables: rule.unknown_variables,
  matched_event_ids: null,
  evaluated_count: 0,
  duration_ms: 0,
  warnings: [],
});
