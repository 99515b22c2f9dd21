import type { TriggerRow } from '../../../db/schema/index.ts';
import { type CompiledRule, RefusedRule } from '../../automation/rules/compile.ts';
import { compiledRule } from '../../automation/rules/compiled-rules.ts';
import { conditionSource, type RuleCondition } from '../../automation/rules/condition.ts';
import type { RuleError } from '../../automation/rules/errors.ts';
import { defaultGroupBy, kindsSource, matchedKinds, matchesAnyKind } from '../../automation/triggers/event-kinds.ts';
import { VARIABLES } from '../../events/variables.ts';
import { badRequest } from '../../platform/errors.ts';
import type { CreateTriggerRequest } from './triggers-schema.ts';

const MIN_WAIT_SECONDS = 60;

/** Validates the rule of a request. @throws ApiError 400 `invalid_rule` with `field`, `rule_error` and `position` */
export function checkRule(source: string, field: string): CompiledRule {
  let rule: CompiledRule;
  try {
    rule = compiledRule(source);
  } catch (error) {
    if (error instanceof RefusedRule) throw invalidRule(error, field);
    throw error;
  }
  const [unknown] = rule.unknown_kinds;
  if (unknown) throw invalidRule(unknown.error, field);
  if (rule.kinds?.length === 0) throw badRequest('invalid_rule', 'The rule can never match', { field });
  return rule;
}

const invalidRule = ({ code, message, position }: RuleError, field: string) =>
  badRequest('invalid_rule', message, { field, rule_error: code, position });

type RuleColumns = Pick<TriggerRow, 'rule' | 'condition' | 'normalized_rule' | 'matched_kinds' | 'event_types'>;

/** Columns of a rule or condition. */
export function ruleColumns(given: {
  rule?: string | null;
  condition?: unknown;
  event_types: string[] | null;
}): RuleColumns {
  const condition = (given.condition ?? null) as RuleCondition | null;
  const source = condition ? conditionSource(condition) : (given.rule ?? '');
  const compiled = checkRule(source, condition ? 'condition' : 'rule');
  const matched_kinds = matchedKinds(compiled, given.event_types);
  if (matched_kinds?.length === 0) {
    throw badRequest('invalid_rule', 'The rule matches none of event_types', { field: 'event_types' });
  }
  return {
    rule: condition ? null : source,
    condition,
    normalized_rule: compiled.normalized,
    matched_kinds,
    event_types: given.event_types,
  };
}

/** @throws ApiError 400 `invalid_group_by` */
export function checkGroupBy(group_by: string[] | undefined, matched_kinds: string[] | null): string[] {
  const unknown = group_by?.find((name) => !Object.hasOwn(VARIABLES, name));
  if (unknown === undefined) return group_by ? [...new Set(group_by)] : defaultGroupBy(matched_kinds);
  throw badRequest('invalid_group_by', `Unknown variable ${unknown}`, { field: 'group_by' });
}

/** The rule for the event that a proactive trigger expects. */
export function expectColumn(expect: CreateTriggerRequest['expect']): string | null {
  if (expect === undefined || expect === null) return null;
  const source = Array.isArray(expect)
    ? kindsSource(expect)
    : typeof expect === 'string'
      ? textSource(expect)
      : conditionSource(expect);
  return checkRule(source, 'expect').normalized;
}

/** Accepts the name of an event kind in place of a rule. */
const textSource = (text: string) => (matchesAnyKind(text) ? kindsSource([text]) : text);

/** @throws ApiError 400 `missing_expect`, `within_too_short` */
export function checkPosture(trigger: Pick<TriggerRow, 'posture' | 'expect' | 'within_seconds'>): void {
  if (trigger.posture !== 'proactive') return;
  if (trigger.expect === null) {
    throw badRequest('missing_expect', 'A proactive trigger requires expect', { field: 'expect' });
  }
  if (trigger.within_seconds < MIN_WAIT_SECONDS) {
    const message = `within_seconds of a proactive trigger must be at least ${MIN_WAIT_SECONDS}`;
    throw badRequest('within_too_short', message, { field: 'within_seconds' });
  }
}
