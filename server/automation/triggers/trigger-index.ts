import { and, eq, isNull, ne, sql } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import { type TriggerRow, triggers } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { type CompiledRule, failingRule } from '../rules/compile.ts';
import { compiledRule } from '../rules/compiled-rules.ts';
import { RuleError } from '../rules/errors.ts';

/** How a trigger opens and resolves cases. */
export interface CaseSettings {
  open: boolean;
  resolve_rule: string | null;
  auto_resolve: boolean;
  reopen_window_seconds: number;
  /** Whether the actions also run when the case is resolved. */
  notify_on_resolve: boolean;
  /** The actions run again at every n-th event of an open case. Null: only when it opens. */
  notify_every: number | null;
}

/** A trigger with those of its rules that can match one kind of event. */
export interface CandidateTrigger {
  trigger: TriggerRow;
  rule: CompiledRule | null;
  /** Resolves the case: the trigger's own rule, or `paired` when the kind is the recovery of a kind it watches. */
  resolve: CompiledRule | 'paired' | null;
  /** Proactive triggers: matches the expected event. */
  expect: CompiledRule | null;
}

/** The enabled triggers of an account, by event kind. */
export interface TriggerIndex {
  candidates(kind: string): CandidateTrigger[];
}

/** Kinds of event that end a problem, with the kinds that they end. */
const RECOVERIES: Readonly<Record<string, readonly string[]>> = {
  connection_succeeded: ['connection_failed', 'connection_partially_failed', 'data_delayed'],
  account_connector_authenticated: ['account_connector_broken', 'account_connector_reauth_required'],
  connection_resumed: ['schema_change_breaking'],
  configuration_matched: ['configuration_drifted'],
  plan_limit_cleared: ['plan_limit_warning', 'plan_limit_reached', 'credits_exhausted'],
};

const indexes = new LRUCache<string, { version: string; index: TriggerIndex }>({ max: 1000 });

const live = (account_id: string) =>
  and(
    eq(triggers.account_id, account_id),
    eq(triggers.enabled, true),
    isNull(triggers.deleted_at),
    ne(triggers.state, 'auto_disabled'),
  );

/** The account's enabled triggers, read again only after one of them was edited. */
export async function triggerIndex(db: Db, account_id: string): Promise<TriggerIndex> {
  const [row] = await db
    .select({
      // A hash, not the latest timestamp: of two edits, the one with the older timestamp may commit last.
      version: sql<string>`count(*) || ':' || coalesce(sum(hashtextextended(${triggers.id}::text || ${triggers.updated_at}::text, 0)), 0)`,
    })
    .from(triggers)
    .where(live(account_id));
  const version = row?.version ?? '';
  const cached = indexes.get(account_id);
  if (cached?.version === version) return cached.index;
  const rows = await db.select().from(triggers).where(live(account_id)).orderBy(triggers.id);
  const index = indexOf(rows);
  indexes.set(account_id, { version, index });
  return index;
}

function indexOf(rows: TriggerRow[]): TriggerIndex {
  const all = rows.map(rulesOf);
  const byKind = new Map<string, CandidateTrigger[]>();
  return {
    candidates(kind) {
      let found = byKind.get(kind);
      if (!found) {
        found = all.flatMap((one) => candidate(one, kind));
        byKind.set(kind, found);
      }
      return found;
    },
  };
}

interface TriggerRules {
  trigger: TriggerRow;
  rule: CompiledRule;
  resolve: CompiledRule | null;
  expect: CompiledRule | null;
}

function rulesOf(trigger: TriggerRow): TriggerRules {
  const { resolve_rule } = caseSettings(trigger);
  return {
    trigger,
    rule: stored(trigger.normalized_rule),
    resolve: resolve_rule === null ? null : stored(resolve_rule),
    expect: typeof trigger.expect === 'string' ? stored(trigger.expect) : null,
  };
}

export const DEFAULT_CASE_SETTINGS: CaseSettings = {
  open: true,
  resolve_rule: null,
  auto_resolve: true,
  reopen_window_seconds: 86_400,
  notify_on_resolve: false,
  notify_every: null,
};

export const caseSettings = (trigger: Pick<TriggerRow, 'case_settings'>): CaseSettings => ({
  ...DEFAULT_CASE_SETTINGS,
  ...trigger.case_settings,
});

/** A rule that another version of the service accepted fails its trigger only, not the evaluation of the account. */
function stored(source: string): CompiledRule {
  try {
    return compiledRule(source);
  } catch (error) {
    if (error instanceof RuleError) return failingRule(source, error);
    throw error;
  }
}

function candidate({ trigger, ...rules }: TriggerRules, kind: string): CandidateTrigger[] {
  const concerned = (rule: CompiledRule | null) => (rule && (rule.kinds?.includes(kind) ?? true) ? rule : null);
  const hinted = trigger.matched_kinds?.includes(kind) ?? true;
  const rule = hinted ? concerned(rules.rule) : null;
  const resolve = concerned(rules.resolve) ?? (rules.resolve === null && isPaired(trigger, kind) ? 'paired' : null);
  const expect = concerned(rules.expect);
  return rule || resolve || expect ? [{ trigger, rule, resolve, expect }] : [];
}

/** A recovery resolves cases only of triggers that watch for its problem and not for the recovery itself. */
function isPaired(trigger: TriggerRow, kind: string): boolean {
  const problems = RECOVERIES[kind];
  const { auto_resolve } = caseSettings(trigger);
  if (!problems || !auto_resolve || !trigger.matched_kinds || trigger.matched_kinds.includes(kind)) return false;
  return trigger.matched_kinds.some((one) => problems.includes(one));
}
