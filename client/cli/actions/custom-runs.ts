import type { ApiClient } from '../../api.ts';
import type { Cli } from '../context.ts';
import { CommandError } from '../exit.ts';
import { duration, number, plural } from '../style.ts';
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

type CustomRunPlan = Awaited<ReturnType<ApiClient['runs']['preview']['mutate']>>;

export async function planRun(cli: Cli, flags: Planning, wanted: string): Promise<void> {
  const api = await cli.api();
  const plan = await previewPlan(api, (await findConnection(api, wanted)).id, flags);
  if (flags.json) cli.document = plan;
  else show(cli, plan);
  if (plan.decision === 'blocked') throw new CommandError('failed', 'The plan is blocked; see the blockers above');
}

export async function launchRun(cli: Cli, flags: Launching, wanted: string): Promise<void> {
  const api = await cli.api();
  const { id: connection_id } = await findConnection(api, wanted);
  const plan = flags.plan === undefined ? await previewPlan(api, connection_id, flags) : null;
  if (plan && !flags.json) show(cli, plan);
  if (plan?.decision === 'blocked') throw new CommandError('failed', 'The plan is blocked; see the blockers above');
  if (plan?.decision === 'nothing_to_do') {
    if (flags.json) cli.document = plan;
    else cli.print('Nothing to do');
    return;
  }
  const message = plan ? `Start ${plan.runnable_chunks} runs?` : `Start plan ${flags.plan}?`;
  await requireConfirmation(cli, { yes: flags.yes, message });
  const launched = await api.runs.launchPlan.mutate({
    connection_id,
    plan_id: plan?.plan_id ?? flags.plan!,
    ...(plan && { plan_hash: plan.plan_hash }),
    confirm: true,
  });
  if (flags.json) {
    cli.document = launched;
    return;
  }
  cli.print(`${launched.status}: ${launched.connection_run_ids.length} runs, ${launched.skipped_count} chunks skipped`);
  for (const id of launched.connection_run_ids) cli.print(`  ${id}`);
}

const previewPlan = (api: ApiClient, connection_id: string, flags: Planning): Promise<CustomRunPlan> =>
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

function show(cli: Cli, plan: CustomRunPlan): void {
  cli.print(
    table(cli, plan.chunks, {
      columns: {
        '#': ({ index }) => String(index),
        from: ({ start_date }) => start_date ?? '–',
        to: ({ end_date }) => end_date ?? '–',
        action: ({ action, skip_reason }) => (skip_reason ? `${action}: ${skip_reason}` : action),
        rows: ({ estimated_rows }) => number(estimated_rows),
        credits: ({ estimated_credits }) => number(estimated_credits),
      },
      wide: {
        duration: ({ estimated_duration_ms }) => duration(estimated_duration_ms),
        streams: ({ stream_names }) => stream_names.join(', '),
      },
    }),
  );
  for (const { message } of plan.blockers) cli.print(`${cli.style('red', 'blocked')}  ${message}`);
  for (const { message } of plan.warnings) cli.print(`${cli.style('yellow', 'warning')}  ${message}`);
  const rest = `${plan.runnable_chunks} of ${plural(plan.total_chunks, 'chunk')} to run, ${plural(plan.estimated_rows, 'row')}, ${plural(plan.estimated_credits, 'credit')} (estimated)`;
  cli.print(`${plan.decision}: ${rest}`);
  cli.print(cli.style('dim', `plan ${plan.plan_id}, valid until ${plan.expires_at}`));
}
