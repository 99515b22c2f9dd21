import { eq } from 'drizzle-orm';
import { type TriggerRow, triggers } from '../../../db/schema/index.ts';
import { refuseLoops } from '../../automation/triggers/action-loops.ts';
import { requireActionPermissions, validateActions } from '../../automation/triggers/validate-actions.ts';
import type { TriggerAction } from '../../automation/triggers/action-schema.ts';
import { emitTriggerChange } from '../../events/trigger-events.ts';
import { caseSettings, DEFAULT_CASE_SETTINGS } from '../../automation/triggers/trigger-index.ts';
import { deleteTriggerRow, forgetGroups } from '../../automation/delete-trigger.ts';
import { sealActions } from '../../automation/triggers/action-secrets.ts';
import { badRequest, RequestShapeError } from '../../platform/errors.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { changedColumns, keysOf } from '../../api/changed-columns.ts';
import { refuseDuplicateName } from '../../api/duplicate-name.ts';
import { accountPlan, checkLimit } from '../access/account-plan.ts';
import { requireRecentSignIn } from '../access/step-up.ts';
import { getTrigger, lockTrigger } from './triggers-query.ts';
import { checkGroupBy, checkPosture, checkRule, expectColumn, ruleColumns } from './triggers-rules.ts';
import type { CreateTriggerRequest, TriggerSchema, UpdateTriggerRequest } from './triggers-schema.ts';

export async function createTrigger(ctx: Ctx, input: CreateTriggerRequest): Promise<TriggerSchema> {
  const identity = { id: Bun.randomUUIDv7(), account_id: ctx.principal.account_id };
  const rule = ruleColumns({ ...input, event_types: input.event_types ?? null });
  const case_settings = { ...DEFAULT_CASE_SETTINGS, ...input.case };
  if (case_settings.resolve_rule !== null) checkRule(case_settings.resolve_rule, 'case.resolve_rule');
  const values = {
    ...identity,
    ...rule,
    name: input.name,
    description: input.description ?? null,
    enabled: input.enabled ?? true,
    severity: input.severity ?? 'warning',
    threshold: input.threshold ?? 1,
    within_seconds: input.within_seconds ?? 0,
    posture: input.posture ?? 'reactive',
    expect: expectColumn(input.expect),
    group_by: checkGroupBy(input.group_by, rule.matched_kinds),
    cooldown_seconds: input.cooldown_seconds ?? 0,
    case_settings,
    owner: input.owner ?? null,
    created_by: ctx.principal.user_id,
  };
  checkPosture(values);
  // Before the transaction: it lists chat channels over the network.
  await validateActions(ctx, input.actions);
  await refuseLoops(ctx.db, input.actions, values);
  const sealed = sealActions(ctx.deps.secrets, { trigger: identity, actions: input.actions, before: null });
  if (sealed.secrets !== null) requireRecentSignIn(ctx);
  await ctx.db.transaction((db) => insertTrigger({ ...ctx, db }, { ...values, ...sealed }));
  return getTrigger(ctx, { trigger_id: identity.id });
}

async function insertTrigger(ctx: Ctx, values: typeof triggers.$inferInsert): Promise<void> {
  await checkLimit(ctx, await accountPlan(ctx), { limit: 'max_triggers' });
  const [made] = await refuseDuplicateName('trigger', ctx.db.insert(triggers).values(values).returning());
  if (!made) throw new Error('the insert returned no row');
  await emitTriggerEvent(ctx, 'trigger_created', made);
}

const NO_ACTIONS = { loc: ['body', 'actions'], msg: 'List should have at least 1 items', type: 'too_short' };

export async function updateTrigger(
  ctx: Ctx,
  { trigger_id, ...input }: UpdateTriggerRequest & { trigger_id: string },
): Promise<TriggerSchema> {
  const shown = await getTrigger(ctx, { trigger_id });
  if (shown.is_system) refuseSystemFields(shown, input);
  // System triggers alone may have none.
  else if (input.actions?.length === 0) throw new RequestShapeError([NO_ACTIONS]);
  if (input.actions) await validateActions(ctx, input.actions);
  await ctx.db.transaction((db) => changeTrigger({ ...ctx, db }, trigger_id, input));
  return getTrigger(ctx, { trigger_id });
}

export async function changeTrigger(ctx: Ctx, trigger_id: string, input: UpdateTriggerRequest): Promise<void> {
  const before = await lockTrigger(ctx, trigger_id);
  if (!isSwitchedOff(input)) requireActionPermissions(ctx, input.actions ?? before.actions);
  const changes = changesOf(ctx, before, input);
  if (keysOf(changes).length === 0) return;
  checkPosture({ ...before, ...changes });
  if (changes.actions || changes.normalized_rule !== undefined) {
    await refuseLoops(ctx.db, (changes.actions ?? before.actions) as TriggerAction[], { ...before, ...changes });
  }
  const updating = ctx.db.update(triggers).set(changes).where(eq(triggers.id, before.id)).returning();
  const [after] = await refuseDuplicateName('trigger', updating);
  if (!after) throw new Error('the update returned no row');
  if (restartsCounting(changes)) await forgetGroups(ctx.db, before.id);
  const changed_fields = Object.keys(input).filter((key) => (COLUMNS[key] ?? [key]).some((one) => one in changes));
  await emitTriggerEvent(ctx, 'trigger_updated', after, changed_fields);
}

/** The columns of request keys that have another name. */
const COLUMNS: Record<string, string[]> = { case: ['case_settings'], actions: ['actions', 'secrets'] };

/** The only change after which the trigger does less than before. */
const isSwitchedOff = ({ enabled, ...others }: UpdateTriggerRequest) =>
  enabled === false && Object.values(others).every((value) => value === undefined);

/** Counters and errors belong to the previous rule. */
const restartsCounting = (changes: Partial<TriggerRow>) =>
  [
    changes.normalized_rule,
    changes.expect,
    changes.posture,
    changes.group_by,
    changes.threshold,
    changes.within_seconds,
  ].some((value) => value !== undefined);

/** What the request changes. A rule is compiled and secrets are compared first: the same text changes nothing. */
function changesOf(ctx: Ctx, before: TriggerRow, input: UpdateTriggerRequest): Partial<TriggerRow> {
  const wanted = wantedColumns(ctx, before, input);
  const changes: Partial<TriggerRow> = changedColumns({ ...before, case_settings: caseSettings(before) }, wanted);
  const revives = input.enabled === true && (before.state === 'auto_disabled' || before.state === 'errored');
  if (restartsCounting(changes) || changes.enabled || revives) {
    Object.assign(changes, changedColumns(before, { state: 'idle', consecutive_errors: 0, last_error: null }));
  }
  return changes;
}

function wantedColumns(ctx: Ctx, before: TriggerRow, input: UpdateTriggerRequest): Partial<TriggerRow> {
  const { rule, condition, event_types, expect, group_by, case: case_settings, actions, ...plain } = input;
  const changes: Partial<TriggerRow> = { ...plain };
  if (actions) Object.assign(changes, sealActions(ctx.deps.secrets, { trigger: before, actions, before }));
  if (changes.secrets !== undefined && changes.secrets !== before.secrets) requireRecentSignIn(ctx);
  if (rule != null || condition != null || event_types !== undefined) {
    const given = rule == null && condition == null ? before : { rule, condition };
    Object.assign(
      changes,
      ruleColumns({ ...given, event_types: event_types === undefined ? before.event_types : event_types }),
    );
  }
  if (expect !== undefined) changes.expect = expectColumn(expect);
  if (group_by) changes.group_by = checkGroupBy(group_by, null);
  if (case_settings) {
    if (case_settings.resolve_rule) checkRule(case_settings.resolve_rule, 'case.resolve_rule');
    changes.case_settings = { ...caseSettings(before), ...case_settings };
  }
  return changes;
}

/** @throws ApiError 400 `system_trigger_field` */
function refuseSystemFields(shown: TriggerSchema, input: UpdateTriggerRequest): void {
  const field = keysOf(changedColumns(shown, input)).find((key) => key !== 'enabled' && key !== 'actions');
  if (field === undefined) return;
  throw badRequest('system_trigger_field', 'Only enabled and actions of a system trigger can be changed', { field });
}

export async function deleteTrigger(ctx: Ctx, input: { trigger_id: string }): Promise<void> {
  const trigger = await lockTrigger(ctx, input.trigger_id);
  if (trigger.is_system) throw badRequest('system_trigger', 'A system trigger cannot be deleted, only disabled');
  await deleteTriggerRow(ctx.db, trigger, actorOf(ctx.principal));
  await emitTriggerEvent(ctx, 'trigger_deleted', trigger);
}

const emitTriggerEvent = (
  ctx: Ctx,
  event: 'trigger_created' | 'trigger_updated' | 'trigger_deleted',
  trigger: TriggerRow,
  changed_fields?: string[],
): Promise<void> =>
  emitTriggerChange({ db: ctx.db, actor: actorOf(ctx.principal) }, event, { trigger, changed_fields });
