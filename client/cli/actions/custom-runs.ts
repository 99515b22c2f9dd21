import type { ApiClient } from '../../api.ts';
import type { Cli } from '../context.ts';
import { Refused } from '../exit.ts';
import { duration, number } from '../style.ts';
import { table } from '../table.ts';
import { findConnection } from './connections.ts';
import { requireConfirmation } from './session.ts';

export interface Planning {
  json: boolean;
  start?: string;
  end?: string;
  split?: 'none' | 'day' | 'week' | 'month' | 'quarter' | 'year';
  size?: number;
  stream?: readonly string[];
  mode?: 'backfill' | 'incremental' | 'full_refresh';
  reprocess?: 'all' | 'missing' | 'failed';
  parallel?: number;
}
export interface Launching extends Planning {
  yes: boolean;
  plan?: string;
}

type Plan = Awaited<ReturnType<ApiClient['runs']['preview']['mutate']>>;

export async function planRun(cli: Cli, flags: Planning, wanted: string): Promise<void> {
  const api = await cli.api();
  const plan = await makePlan(api, (await findConnection(api, wanted)).id, flags);
  if (flags.json) cli.say(JSON.stringify(plan, null, 2));
  else show(cli, plan);
  if (plan.decision === 'blocked') throw new Refused('failed', 'The plan is blocked');
}

export async function launchRun(cli: Cli, flags: Launching, wanted: string): Promise<void> {
  const api = await cli.api();
  const { id: connection_id } = await findConnection(api, wanted);
  const plan = flags.plan === undefined ? await makePlan(api, connection_id, flags) : null;
  if (plan && !flags.json) show(cli, plan);
  if (plan?.decision === 'blocked') throw new Refused('failed', 'The plan is blocked');
  if (plan?.decision === 'nothing_to_do')
    return cli.say(flags.json ? JSON.stringify(plan, null, 2) : 'There is nothing to do');
  const message = plan ? `Start ${plan.runnable_chunks} runs?` : `Start the plan ${flags.plan}?`;
  await requireConfirmation(cli, { yes: flags.yes, message });
  const launched = await api.runs.launchPlan.mutate({
    connection_id,
    plan_id: plan?.plan_id ?? flags.plan!,
    ...(plan && { plan_hash: plan.plan_hash }),
    confirm: true,
  });
  if (flags.json) return cli.say(JSON.stringify(launched, null, 2));
  cli.say(`${launched.status}: ${launched.connection_run_ids.length} runs, ${launched.skipped_count} chunks skipped`);
  for (const id of launched.connection_run_ids) cli.say(`  ${id}`);
}

const makePlan = (api: ApiClient, connection_id: string, flags: Planning): Promise<Plan> =>
  api.runs.preview.mutate({
    connection_id,
    parameters: {
      start_date: flags.start,
      end_date: flags.end,
      stream_names: flags.stream && [...flags.stream],
      mode: flags.mode,
      reprocess: flags.reprocess,
      max_parallel_runs: flags.parallel,
      ...(flags.split && { split: { unit: flags.split, size: flags.size ?? 1 } }),
    },
  });

function show(cli: Cli, plan: Plan): void {
  cli.say(
    table(cli, plan.chunks, {
      '#': ({ index }) => String(index),
      from: ({ start_date }) => start_date ?? '–',
      to: ({ end_date }) => end_date ?? '–',
      action: ({ action, skip_reason }) => (skip_reason ? `${action}: ${skip_reason}` : action),
      streams: ({ stream_names }) => stream_names.join(', '),
      rows: ({ estimated_rows }) => number(estimated_rows),
      credits: ({ estimated_credits }) => number(estimated_credits),
      takes: ({ estimated_duration_ms }) => duration(estimated_duration_ms),
    }),
  );
  for (const { message } of plan.blockers) cli.say(`${cli.style('red', 'blocked')}  ${message}`);
  for (const { message } of plan.warnings) cli.say(`${cli.style('yellow', 'warning')}  ${message}`);
  const rest = `${plan.runnable_chunks} of ${plan.total_chunks} chunks to run, ${number(plan.estimated_rows)} rows, ${number(plan.estimated_credits)} credits (estimated)`;
  cli.say(`${plan.decision}: ${rest}`);
  cli.say(cli.style('dim', `plan ${plan.plan_id}, good until ${plan.expires_at}`));
}
