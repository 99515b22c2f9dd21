import type { TriggerRow } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { TriggerAction } from './action-schema.ts';
import { evaluateRule, ruleEvent } from '../evaluation/evaluate-rule.ts';
import { EVENT_KINDS, type EventKind } from '../../events/kinds.ts';
import { compiledRule } from '../rules/compiled-rules.ts';
import { sampleFacts } from '../rules/sample.ts';
import { badRequest } from '../../platform/errors.ts';
import { connectionFacts } from '../../events/run-events.ts';

/** The rule of a trigger, as far as loops go. */
export type LoopRule = Pick<TriggerRow, 'normalized_rule' | 'matched_kinds'>;

/** Kinds of event that a run brings about just by running. */
const OF_RUNS = (Object.keys(EVENT_KINDS) as EventKind[]).filter((kind) =>
  /^(connection_run_|connection_succeeded$)/.test(kind),
);

/**
 * A run must not set off the next one of the same connection, and so on for ever. For a connection that the action
 * names, the rule is held against samples of that connection's own events. Longer ways round end at the greatest depth
 * of causes.
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
    throw badRequest('action_loop', `The action would set off ${event}, which the rule matches`, {
      field: `actions.${index}`,
      event,
    });
  }
}

function matches(rule: LoopRule, kind: EventKind, facts: Record<string, unknown>): boolean {
  return evaluateRule(compiledRule(rule.normalized_rule), ruleEvent({ ...sampleFacts(kind), ...facts })).matched;
}
