import type { EventRow, TriggerRow } from '../../../db/schema/index.ts';
import { evaluateRule, type RuleEvent, type RuleOutcome, storedRuleEvent } from '../rules/evaluate-rule.ts';
import type { RuleError } from '../rules/errors.ts';
import type { CandidateTrigger, TriggerIndex } from '../triggers/trigger-index.ts';

/** An event that concerns a trigger, and how. */
export interface Match {
  event: EventRow;
  trigger: TriggerRow;
  /** `paired`: the event is the recovery of a kind that the trigger watches. */
  kind: 'matched' | 'expected' | 'resolved' | 'paired';
  facts: Record<string, unknown>;
}

/** The evaluations of one trigger in a batch. */
export interface TriggerTally {
  trigger: TriggerRow;
  errors: number;
  last_error: RuleError | null;
  /** Errors caused by the rule since its last success in this batch. */
  blamed: number;
  /** Whether any evaluation in this batch succeeded. */
  succeeded: boolean;
}

export interface BatchMatches {
  matches: Match[];
  tallies: Map<string, TriggerTally>;
}

/** Events deeper in a chain of causes are not evaluated, which ends loops. */
const MAX_CAUSATION_DEPTH = 3;

/** Evaluates events in order against the triggers that may match them. Pure. */
export function matchEvents(events: EventRow[], index: TriggerIndex): BatchMatches {
  const found: BatchMatches = { matches: [], tallies: new Map() };
  for (const event of events) {
    if (event.causation_depth > MAX_CAUSATION_DEPTH) continue;
    const candidates = index.candidates(event.event);
    if (candidates.length === 0) continue;
    const seen = storedRuleEvent(event);
    for (const candidate of candidates) {
      if (!isAboutItself(candidate.trigger, event)) matchOne(found, candidate, { event, seen });
    }
  }
  return found;
}

/** Events about the trigger itself must not fire it again. */
const isAboutItself = (trigger: TriggerRow, event: EventRow) =>
  event.category === 'automation' && event.payload.trigger_id === trigger.id;

function matchOne(
  { matches, tallies }: BatchMatches,
  candidate: CandidateTrigger,
  at: { event: EventRow; seen: RuleEvent },
): void {
  const { trigger } = candidate;
  const tally = tallies.get(trigger.id) ?? { trigger, errors: 0, last_error: null, blamed: 0, succeeded: false };
  tallies.set(trigger.id, tally);
  const holds = (rule: CandidateTrigger['rule']) => {
    if (!rule) return false;
    const outcome = evaluateRule(rule, at.seen);
    count(tally, outcome);
    return outcome.matched;
  };
  const add = (kind: Match['kind']) => matches.push({ event: at.event, trigger, kind, facts: at.seen.facts });
  if (holds(candidate.expect)) add('expected');
  if (holds(candidate.rule)) add('matched');
  else if (candidate.resolve === 'paired') add('paired');
  else if (holds(candidate.resolve)) add('resolved');
}

function count(tally: TriggerTally, { error, blames_rule }: RuleOutcome): void {
  if (!error) {
    tally.blamed = 0;
    tally.succeeded = true;
    return;
  }
  tally.errors += 1;
  tally.last_error = error;
  if (blames_rule) tally.blamed += 1;
}
