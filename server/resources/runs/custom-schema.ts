import type { SkipReason } from '../../pipeline/custom-run/plan.ts';
import { z } from 'zod';
import { SPLIT_UNITS } from '../../pipeline/custom-run/windows.ts';
import { count, day, idInBody, instant, text, UserReference } from '../../api/wire-types.ts';

const SKIP_REASONS = ['already_succeeded', 'in_flight', 'empty_window', 'never_run'] as const satisfies SkipReason[];

const date = () => z.string().meta({ format: 'date' });

export const MODES = ['backfill', 'incremental', 'full_refresh'] as const;
export const ORDERS = ['chronological', 'reverse_chronological'] as const;
export const REPROCESS = ['all', 'missing', 'failed'] as const;
export const MAX_PARALLEL_RUNS = 10;
export const MAX_SPLIT_SIZE = 365;

/** The body of a custom run. Without any parameter, a plain run. */
export const CustomRunParameters = z
  .strictObject({
    start_date: day().nullish().meta({ description: "First day, in the connection's time zone" }),
    end_date: day().nullish().meta({ description: 'Last day, inclusive; default: today' }),
    stream_ids: z.array(idInBody()).max(10_000).nullish(),
    stream_names: z.array(text(1, 511)).max(10_000).nullish().meta({ description: '`name` or `namespace.name`' }),
    mode: z.enum(MODES).nullish(),
    split: z.strictObject({ unit: z.enum(SPLIT_UNITS), size: z.int().min(1).max(MAX_SPLIT_SIZE).default(1) }).nullish(),
    order: z.enum(ORDERS).nullish(),
    max_parallel_runs: z.int().min(1).max(MAX_PARALLEL_RUNS).nullish(),
    reprocess: z.enum(REPROCESS).nullish(),
    update_cursor: z.boolean().nullish(),
    clear_destination: z.boolean().nullish(),
    on_chunk_failure: z.enum(['stop', 'continue']).nullish(),
    reason: text(0, 500).nullish(),
  })
  .refine(({ clear_destination, mode }) => clear_destination !== true || mode === 'full_refresh', {
    path: ['clear_destination'],
    message: 'Only a full refresh can clear the destination',
  })
  .meta({
    id: 'CustomRunParameters',
    examples: [
      { start_date: '2026-01-01', end_date: '2026-03-31', split: { unit: 'month', size: 1 }, max_parallel_runs: 2 },
    ],
  });
export type CustomRunParameters = z.infer<typeof CustomRunParameters>;

/** No body, `null` and `{}` mean the same. */
export const isPlain = (parameters: CustomRunParameters | null | undefined): boolean =>
  Object.values(parameters ?? {}).every((value) => value == null);

export const CustomRunSplitOptions = z
  .object({
    units: z.array(
      z.object({
        value: z.enum(SPLIT_UNITS),
        label: z.string(),
        description: z.string(),
        max_chunks: z.int(),
        approx_days: z.int().nullable(),
      }),
    ),
    default_unit: z.enum(SPLIT_UNITS),
    default_size: z.int(),
    max_range_days: z.int(),
    max_chunks: z.int(),
    max_parallel_runs: z.int(),
    orders: z.array(z.enum(ORDERS)),
    reprocess_options: z.array(z.enum(REPROCESS)),
    modes: z.array(z.enum(MODES)),
    recommended: z.array(z.object({ min_days: z.int(), unit: z.enum(SPLIT_UNITS) })),
    plan_ttl_minutes: z.int(),
    timezone: z.string(),
  })
  .meta({ id: 'CustomRunSplitOptions' });
export type CustomRunSplitOptions = z.infer<typeof CustomRunSplitOptions>;

const PlanNotice = z
  .object({ code: z.string(), message: z.string(), stream_name: z.string().nullable() })
  .meta({ id: 'CustomRunPlanNotice' });

const estimates = {
  estimated_rows: count().nullable(),
  estimated_credits: count().nullable(),
  estimated_duration_ms: count().nullable(),
};

const CustomRunChunk = z
  .object({
    index: z.int(),
    start_date: date().nullable(),
    end_date: date().nullable(),
    stream_names: z.array(z.string()),
    action: z.enum(['run', 'skip']),
    skip_reason: z.enum(SKIP_REASONS).nullable(),
    ...estimates,
  })
  .meta({ id: 'CustomRunChunk' });

/** As in the request, with the defaults filled in. */
const CompleteParameters = z
  .object({
    start_date: date().nullable(),
    end_date: date().nullable(),
    stream_ids: z.array(z.string()).nullable(),
    stream_names: z.array(z.string()).nullable(),
    mode: z.enum(MODES),
    split: z.object({ unit: z.enum(SPLIT_UNITS), size: z.int() }),
    order: z.enum(ORDERS),
    max_parallel_runs: z.int(),
    reprocess: z.enum(REPROCESS),
    update_cursor: z.boolean(),
    clear_destination: z.boolean(),
    on_chunk_failure: z.enum(['stop', 'continue']),
    reason: z.string().nullable(),
  })
  .meta({ id: 'CustomRunCompleteParameters' });

export const CustomRunPlannerDecision = z
  .object({
    plan_id: z.string().meta({ format: 'uuid' }),
    plan_hash: z.string().meta({ description: 'SHA-256, hexadecimal' }),
    expires_at: instant(),
    decision: z.enum(['single_run', 'split_runs', 'nothing_to_do', 'blocked']),
    parameters: CompleteParameters,
    chunks: z.array(CustomRunChunk),
    total_chunks: z.int(),
    runnable_chunks: z.int(),
    skipped_chunks: z.int(),
    streams: z.array(
      z.object({
        stream_id: z.string().meta({ format: 'uuid' }),
        stream_name: z.string(),
        supports_date_window: z.boolean(),
        reason: z.string().nullable(),
      }),
    ),
    ...estimates,
    credits_remaining: count().nullable(),
    warnings: z.array(PlanNotice),
    blockers: z.array(PlanNotice),
    requires_confirmation: z.boolean(),
    created_at: instant(),
    created_by: UserReference.nullable(),
  })
  .meta({ id: 'CustomRunPlannerDecision' });
export type CustomRunPlannerDecision = z.infer<typeof CustomRunPlannerDecision>;

export const CustomRunPlanLaunchRequest = z
  .strictObject({
    plan_id: idInBody(),
    plan_hash: text(1, 64).nullish(),
    confirm: z.boolean().default(false),
    chunk_indexes: z.array(z.int().min(0)).min(1).max(10_000).nullish().meta({
      description: 'The chunks to launch. Default: all that were not launched.',
    }),
  })
  .meta({
    id: 'CustomRunPlanLaunchRequest',
    examples: [{ plan_id: '019a9f6e-0000-7000-8000-000000000001', chunk_indexes: [0, 1] }],
  });
export type CustomRunPlanLaunchRequest = z.infer<typeof CustomRunPlanLaunchRequest>;

export const CustomRunPlanLaunchResponse = z
  .object({
    plan_id: z.string().meta({ format: 'uuid' }),
    status: z.enum(['launched', 'partially_launched', 'nothing_to_do']),
    connection_run_ids: z.array(z.string()),
    first_connection_run_id: z.string().nullable(),
    launched_count: z.int().meta({ description: 'Runs that were created, including queued ones' }),
    queued_count: z.int().meta({ description: 'Runs that wait for their turn' }),
    skipped_count: z.int(),
    skipped: z
      .array(z.object({ index: z.int(), reason: z.enum([...SKIP_REASONS, 'not_requested', 'already_launched']) }))
      .meta({
        description: 'Chunks that this launch did not start: skipped by the plan, not requested, or launched earlier.',
      }),
    launched_at: instant(),
  })
  .meta({ id: 'CustomRunPlanLaunchResponse' });
export type CustomRunPlanLaunchResponse = z.infer<typeof CustomRunPlanLaunchResponse>;
