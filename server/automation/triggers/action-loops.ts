import type { TriggerRow } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { TriggerAction } from './action-schema.ts';
import { evaluateRule, ruleEvent } from '../rules/evaluate-rule.ts';
import { EVENT_KINDS, type EventKind } from '../../events/kinds.ts';
import { compiledRule } from '../rules/compiled-rules.ts';
import { sampleFacts } from '../rules/sample-facts.ts';
import { badRequest } from '../../platform/errors.ts';
import { connectionFacts } from '../../events/run-events.ts';

/** The parts of a trigger that can cause a loop. */
export type LoopRule = Pick<TriggerRow, 'normalized_rule' | 'matched_kinds'>;

/** Kinds of event that every run emits. */
const OF_RUNS = (Object.keys(EVENT_KINDS) as EventKind[]).filter((kind) =>
  /^(connection_run_|connection_succeeded$)/.test(kind),
);

/**
 * Rejects a trigger whose runs would start the next run of the same connection, endlessly. If the action names a
 * connection, the rule is evaluated on samples of that connection's events. Longer loops end at the maximum depth of
 * causes.
 * @throws ApiError 400 `action_loop` with `field` and `event`.
 */
export async function refuseLoops(db: Db, actions: readonly TriggerAction[], rule: LoopRule): Promise<void> {
  for (const [index, action] of actions.entries()) {
    if (action.type !== 'run_connection' && action.type !== 'rerun_run') continue;
    const named = action.type === 'run_connection' ? action.connection_id : null;
    const kinds = OF_RUNS.filter((kind) => rule.matched_kinds?.includes(kind) ?? true);
    const facts = named === null || kinds.length === 0 ? null : await connectionFacts(db, named);
    const event = kinds.find((kind) => facts === null || matches(rule, kind, facts));
    if (event === undefined) continue;
    throw badRequest('action_loop', `The action would cause ${event}, which the rule matches`, {
      field: `actions.${index}`,
      event,
    });
  }
}

function matches(rule: LoopRule, kind: EventKind, facts: Record<string, unknown>): boolean {
  return evaluateRule(compiledRule(rule.normalized_rule), ruleEvent({ ...sampleFacts(kind), ...facts })).matched;
}
