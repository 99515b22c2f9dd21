import { and, desc, eq } from 'drizzle-orm';
import { events } from '../../../db/schema/index.ts';
import { evaluateRule, type RuleEvent, ruleEvent, storedRuleEvent } from '../../automation/rules/evaluate-rule.ts';
import { type CompiledRule, compileRule, RefusedRule } from '../../automation/rules/compile.ts';
import { conditionSource } from '../../automation/rules/condition.ts';
import type { RuleError } from '../../automation/rules/errors.ts';
import { sampleFacts } from '../../automation/rules/sample-facts.ts';
import { isStatistic } from '../../events/variables.ts';
import { notFound } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { isId } from '../../api/wire-types.ts';
import type { EvaluateRequest, EvaluateResponse } from './evaluate-schema.ts';

/** Tests a rule as the engine would run it. An invalid rule is a normal result; an unknown `event_id` is an error. */
export async function evaluateAutomatorRule(ctx: Ctx, input: EvaluateRequest): Promise<EvaluateResponse> {
  const tested = await testedEvents(ctx, input);
  const source = input.condition ? conditionSource(input.condition) : (input.rule ?? '');
  let rule: CompiledRule;
  try {
    rule = compileRule(source);
  } catch (error) {
    if (error instanceof RefusedRule) return refused(error);
    throw error;
  }
  return { ...describe(rule), ...run(rule, tested) };
}

interface TestedEvent {
  event: RuleEvent;
  /** Id of a stored event. */
  id: string | null;
}

async function testedEvents(ctx: Ctx, input: EvaluateRequest): Promise<TestedEvent[]> {
  const { event, event_id, event_type, limit } = input;
  const mine = eq(events.account_id, ctx.principal.account_id);
  if (event) return [{ event: ruleEvent(event), id: null }];
  if (event_id !== undefined) {
    const [row] = isId(event_id)
      ? await ctx.db
          .select()
          .from(events)
          .where(and(mine, eq(events.id, event_id)))
      : [];
    if (!row) throw notFound('Event');
    return [{ event: storedRuleEvent(row), id: row.id }];
  }
  if (limit !== undefined) {
    const rows = await ctx.db
      .select()
      .from(events)
      .where(and(mine, event_type && eq(events.event, event_type)))
      .orderBy(desc(events.occurred_at), desc(events.id))
      .limit(limit);
    return rows.map((row) => ({ event: storedRuleEvent(row), id: row.id }));
  }
  return event_type ? [{ event: ruleEvent(sampleFacts(event_type)), id: null }] : [];
}

const describe = (rule: CompiledRule) => ({
  is_valid: true,
  result_type: 'bool',
  normalized_rule: rule.normalized,
  matched_kinds: rule.kinds,
  variables_used: rule.variables,
  functions_used: rule.functions,
  unknown_variables: [],
});

function run(rule: CompiledRule, tested: TestedEvent[]) {
  const matched: TestedEvent[] = [];
  let failure: RuleError | null = null;
  let failures = 0;
  const started = performance.now();
  for (const one of tested) {
    const outcome = evaluateRule(rule, one.event);
    if (outcome.matched) matched.push(one);
    if (!outcome.error) continue;
    failure ??= outcome.error;
    failures += 1;
  }
  const duration = performance.now() - started;
  const all_failed = tested.length > 0 && failures === tested.length;
  return {
    result: tested.length === 0 || all_failed ? null : matched.length > 0,
    error: failure && tell(failure),
    matched_event_ids: tested.some(({ id }) => id !== null) ? matched.flatMap(({ id }) => id ?? []) : null,
    evaluated_count: tested.length,
    duration_ms: Math.round(duration * 1000) / 1000,
    warnings: [
      ...warningsOf(rule),
      ...(failures > 0 ? [`Evaluation failed for ${failures} of ${tested.length} events`] : []),
    ],
  };
}

const tell = ({ code, message, position }: RuleError) => ({ code, message, position });

function warningsOf(rule: CompiledRule): string[] {
  const warnings = rule.unknown_kinds.map(({ kind }) => `Unknown event kind "${kind}" can never match`);
  if (rule.kinds === null) warnings.push('The rule does not name an event kind and is evaluated for every event');
  else if (rule.kinds.length === 0) warnings.push('The rule can never match');
  for (const name of rule.variables.filter(isStatistic)) {
    warnings.push(`${name} is null until the connection has enough runs, and comparisons with null do not match`);
  }
  return warnings;
}

const refused = (error: RefusedRule): EvaluateResponse => ({
  is_valid: false,
  result: null,
  result_type: error.result_type,
  error: tell(error),
  normalized_rule: null,
  matched_kinds: null,
  variables_used: error.variables,
  functions_used: error.functions,
  unknown_variables: error.unknown_variables,
  matched_event_ids: null,
  evaluated_count: 0,
  duration_ms: 0,
  warnings: [],
});
