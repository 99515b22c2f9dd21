import type { EventRow } from '../../../db/schema/index.ts';
import type { CompiledRule } from './compile.ts';
import { RuleError } from './errors.ts';
import { ruleVariables } from './rule-variables.ts';
import { eventFacts, isEventKind, isStatistic, VARIABLES_OF } from '../../events/variables.ts';

/** An event as rules see it. */
export interface RuleEvent {
  kind: string;
  /** The variables as JSON. */
  facts: Record<string, unknown>;
  /** The variables in the types of the rule language. */
  variables: Record<string, unknown>;
}

export interface RuleOutcome {
  matched: boolean;
  error: RuleError | null;
  /** Whether the rule is at fault. False when the event lacks a variable that the rule compares. */
  blames_rule: boolean;
}

const NO_MATCH: RuleOutcome = { matched: false, error: null, blames_rule: false };
const MATCH: RuleOutcome = { matched: true, error: null, blames_rule: false };

export function ruleEvent(facts: Record<string, unknown>): RuleEvent {
  const kind = typeof facts.event === 'string' ? facts.event : '';
  return { kind, facts, variables: ruleVariables(facts) };
}

export const storedRuleEvent = (event: EventRow): RuleEvent => ruleEvent(eventFacts(event));

/** Evaluates a rule on an event, for the engine and the rule tester alike. An error counts as no match. */
export function evaluateRule(rule: CompiledRule, event: RuleEvent): RuleOutcome {
  if (rule.kinds && !rule.kinds.includes(event.kind)) return NO_MATCH;
  try {
    return rule.evaluate(event.variables) ? MATCH : NO_MATCH;
  } catch (error) {
    if (!(error instanceof RuleError)) throw error;
    return { matched: false, error, blames_rule: !lacksVariable(rule, event) };
  }
}

/** True when the kind of event has no such variable, or the connection has too few runs for a statistic. */
function lacksVariable(rule: CompiledRule, { kind, facts }: RuleEvent): boolean {
  const carried = isEventKind(kind) ? VARIABLES_OF[kind] : null;
  return rule.variables.some(
    (name) => (facts[name] ?? null) === null && (isStatistic(name) || carried?.has(name) === false),
  );
}
