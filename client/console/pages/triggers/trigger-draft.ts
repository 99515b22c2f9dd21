import { CASE_DEFAULTS } from '../../../case-defaults.ts';
import { hasMask } from '../../../pipeline-file/mask.ts';
import type { RouterInputs, RouterOutputs } from '../../api.ts';

export type Trigger = RouterOutputs['automation']['getTrigger'];
type Create = RouterInputs['automation']['createTrigger'];
export type Action = Create['actions'][number];
type Update = RouterInputs['automation']['updateTrigger'];
type CaseSettings = Trigger['case'];

/** The values of the form. */
export interface TriggerDraft {
  name: string;
  description: string;
  rule: string;
  event_types: string[];
  severity: NonNullable<Create['severity']>;
  threshold: number;
  within_seconds: number;
  posture: Trigger['posture'];
  expect: string;
  group_by: string[];
  cooldown_seconds: number;
  enabled: boolean;
  case: CaseSettings;
  actions: Action[];
}

export const newTrigger = (): TriggerDraft => ({
  name: '',
  description: '',
  rule: 'event == "connection_failed"',
  event_types: [],
  severity: 'warning',
  threshold: 1,
  within_seconds: 0,
  posture: 'reactive',
  expect: '',
  group_by: ['connection_id'],
  cooldown_seconds: 0,
  enabled: true,
  case: CASE_DEFAULTS,
  actions: [],
});

export const draftOf = (trigger: Trigger): TriggerDraft => ({
  name: trigger.name,
  description: trigger.description ?? '',
  // A JSON condition is edited as the equivalent rule.
  rule: trigger.rule ?? trigger.normalized_rule,
  event_types: trigger.event_types ?? [],
  severity: trigger.severity,
  threshold: trigger.threshold,
  within_seconds: trigger.within_seconds,
  posture: trigger.posture,
  expect: trigger.expect ?? '',
  group_by: trigger.group_by,
  cooldown_seconds: trigger.cooldown_seconds,
  enabled: trigger.enabled,
  case: trigger.case,
  actions: trigger.actions as unknown as Action[],
});

export const requestOf = (draft: TriggerDraft): Create => ({
  ...draft,
  name: draft.name.trim(),
  description: draft.description.trim() || null,
  event_types: draft.event_types.length === 0 ? null : draft.event_types,
  expect: draft.posture === 'proactive' ? draft.expect : null,
});

/** Only the changed settings, because a system trigger refuses most others. */
export function changesOf(draft: TriggerDraft, stored: TriggerDraft): Omit<Update, 'trigger_id'> {
  const [after, before] = [requestOf(draft), requestOf(stored)] as Record<string, unknown>[];
  const changed = Object.entries(after!).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before![name]),
  );
  return Object.fromEntries(changed);
}

/** The settings that an update replaces; null where they cannot be sent again: secrets, and a condition in JSON. */
export function formerOf(trigger: Trigger, { trigger_id, ...sent }: Update): Update | null {
  const all: Record<string, unknown> = requestOf(draftOf(trigger));
  const former = Object.fromEntries(Object.keys(sent).map((name) => [name, all[name]]));
  if (hasMask(former.actions) || ('rule' in sent && trigger.rule === null)) return null;
  return { trigger_id, ...former };
}
