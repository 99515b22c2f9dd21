import { EVENT_KINDS } from '../../events/kinds.ts';
import type { CompiledRule } from '../rules/compile.ts';
import { isEventKind, VARIABLES_OF } from '../../events/variables.ts';

const KINDS = Object.keys(EVENT_KINDS);

/** The kinds that match a pattern such as `connection_*`. */
const kindsOf = (pattern: string) =>
  pattern.endsWith('*')
    ? KINDS.filter((kind) => kind.startsWith(pattern.slice(0, -1)))
    : KINDS.filter((kind) => kind === pattern);

export const matchesAnyKind = (pattern: string) => kindsOf(pattern).length > 0;

/** Kinds of event that can fire a trigger: those its rule names, limited to `event_types`. Null: any kind. */
export function matchedKinds(rule: CompiledRule, event_types: readonly string[] | null): string[] | null {
  const hinted = event_types && [...new Set(event_types.flatMap(kindsOf))];
  if (!rule.kinds || !hinted) return rule.kinds ?? hinted;
  return rule.kinds.filter((kind) => hinted.includes(kind));
}

/** The rule for an expectation given as kinds of event. */
export const kindsSource = (patterns: readonly string[]) =>
  `event in [${[...new Set(patterns.flatMap(kindsOf))].map((kind) => JSON.stringify(kind)).join(', ')}]`;

/** By source or destination if all events are about one, else by connection if the events have one. */
export function defaultGroupBy(kinds: readonly string[] | null): string[] {
  const named = (kinds ?? []).filter(isEventKind);
  if (named.length > 0 && named.every((kind) => EVENT_KINDS[kind].category === 'account_connector')) {
    return ['account_connector_id'];
  }
  const hasConnection = kinds === null || named.some((kind) => VARIABLES_OF[kind].has('connection_id'));
  return hasConnection ? ['connection_id'] : [];
}
