import { and, eq, isNull, ne, sql } from 'drizzle-orm';
import { type TriggerRow, triggers } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { type CompiledRule, failingRule } from '../rules/compile.ts';
import { compiledRule } from '../rules/compiled-rules.ts';
import { RuleError } from '../rules/errors.ts';

/** How a trigger's cases are opened and closed. */
export interface CaseSettings {
  open: boolean;
  resolve_rule: string | null;
  auto_resolve: boolean;
  reopen_window_seconds: number;
  /** Whether the actions run on resolution too. */
  notify_on_resolve: boolean;
  /** The actions run at every so many further events of an open case; null: only when it is opened. */
  notify_every: number | null;
}

/** A trigger with its rules, as far as an event of one kind can matter to them. */
export interface Candidate {
  trigger: TriggerRow;
  rule: CompiledRule | null;
  /** Says that the problem is over: the trigger's own rule for that, or true for the paired recovery. */
  resolve: CompiledRule | 'paired' | null;
  /** Proactive: says that what was waited for has come. */
  expect: CompiledRule | null;
}

/** The triggers of an account by the kind of event that may concern them. */
export interface TriggerIndex {
  candidates(kind: string): Candidate[];
}

/** What says by itself that a problem is over, by the kind of the recovery. */
const RECOVERIES: Readonly<Record<string, readonly string[]>> = {
  connection_succeeded: ['connection_failed', 'connection_partially_failed', 'data_delayed'],
  account_connector_authenticated: ['account_connector_broken', 'account_connector_reauth_required'],
  connection_resumed: ['schema_change_breaking'],
  plan_limit_cleared: ['plan_limit_warning', 'plan_limit_reached', 'credits_exhausted'],
};

const MAX_ACCOUNTS = 1000;
const known = new Map<string, { version: string; index: TriggerIndex }>();

const live = (account_id: string) =>
  and(
    eq(triggers.account_id, account_id),
    eq(triggers.enabled, true),
    isNull(triggers.deleted_at),
    ne(triggers.state, 'auto_disabled'),
  );

/** The account's enabled triggers; read anew only when one of them was edited. */
export async function triggerIndex(db: Db, account_id: string): Promise<TriggerIndex> {
  const [row] = await db
    .select({
      // No maximum: of two edits the one with the older time stamp may be committed last.
      version: sql<string>`count(*) || ':' || coalesce(sum(hashtextextended(${triggers.id}::text || ${triggers.updated_at}::text, 0)), 0)`,
    })
    .from(triggers)
    .where(live(account_id));
  const version = row?.version ?? '';
  const cached = known.get(account_id);
  if (cached?.version === version) return cached.index;
  const rows = await db.select().from(triggers).where(live(account_id)).orderBy(triggers.id);
  const index = indexOf(rows);
  if (known.size >= MAX_ACCOUNTS) known.delete(known.keys().next().value!);
  known.set(account_id, { version, index });
  return index;
}

function indexOf(rows: TriggerRow[]): TriggerIndex {
  const all = rows.map(rulesOf);
  const byKind = new Map<string, Candidate[]>();
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

/** A rule that another version of the service took is an error of its trigger, not of the engine. */
function stored(source: string): CompiledRule {
  try {
    return compiledRule(source);
  } catch (error) {
    if (error instanceof RuleError) return failingRule(source, error);
    throw error;
  }
}

function candidate({ trigger, ...rules }: TriggerRules, kind: string): Candidate[] {
  const concerned = (rule: CompiledRule | null) => (rule && (rule.kinds?.includes(kind) ?? true) ? rule : null);
  const hinted = trigger.matched_kinds?.includes(kind) ?? true;
  const rule = hinted ? concerned(rules.rule) : null;
  const resolve = concerned(rules.resolve) ?? (rules.resolve === null && isPaired(trigger, kind) ? 'paired' : null);
  const expect = concerned(rules.expect);
  return rule || resolve || expect ? [{ trigger, rule, resolve, expect }] : [];
}

/** A recovery closes only what is about the problem alone. */
function isPaired(trigger: TriggerRow, kind: string): boolean {
  const problems = RECOVERIES[kind];
  const { auto_resolve } = caseSettings(trigger);
  if (!problems || !auto_resolve || !trigger.matched_kinds || trigger.matched_kinds.includes(kind)) return false;
  return trigger.matched_kinds.some((one) => problems.includes(one));
}
