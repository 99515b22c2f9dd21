import type { DetailHistory } from '../../db/schema/index.ts';
import type { EnumLabel, Partition, StreamSchema } from '../connectors/contract/connector.ts';
import { inWords } from '../pipeline/log-words.ts';
import { givesChanges } from '../pipeline/stream-defaults.ts';
import type { TransferPlan } from '../pipeline/transfer-plan.ts';
import type { Attempt } from './attempt.ts';

/** What the next run compares the details of the stream with. Null: its source finds none. */
export function detailsAfter({ details }: Pick<StreamSchema, 'details'>): DetailHistory | null {
  if (!details) return null;
  return {
    partitions: Object.fromEntries(details.partitions.map(({ id, name, file }) => [id, [name, file]])),
    enum_labels: Object.fromEntries(details.enum_labels.map(({ id, label }) => [id, label])),
  };
}

/** Warns of rows of an incremental stream that changed at the source, of which neither a log nor a cursor tells. */
export function warnAboutSilentChanges(attempt: Attempt, schema: StreamSchema, plan: TransferPlan): void {
  const { stream, run } = attempt.claim;
  const { loaded_details: known, sync_mode, state } = stream;
  const { details } = schema;
  if (!known || !details || sync_mode !== 'incremental' || state === null || run.custom_run_plan_id !== null) return;
  const follows = givesChanges(schema, stream);
  const moved = partitionChanges(known.partitions, details.partitions, { follows });
  if (moved.length > 0) {
    attempt.warn(
      'partitions_changed',
      `Partitions of ${stream.name} were ${moved.join(', ')}. Rows that came or went with them are neither read nor deleted. A verification finds and repairs them, or reset the stream's cursor, so that the next run reads the whole table`,
    );
  }
  const renamed = renamedLabels(known.enum_labels, details.enum_labels, plan);
  if (renamed.length > 0) {
    attempt.warn(
      'enum_values_renamed',
      `Enum values in ${stream.name} were renamed: ${listOf(renamed)}. Rows loaded earlier keep the old names until they change at the source. A verification finds and repairs them, or reset the stream's cursor, so that the next run reads the whole table`,
    );
  }
}

function partitionChanges(
  known: DetailHistory['partitions'],
  partitions: readonly Partition[],
  { follows }: { follows: boolean },
): string[] {
  // A partition that was created as one begins without rows.
  const attached = partitions.filter((one) => one.attached && !known[one.id]).map(({ name }) => name);
  const changes: [what: string, names: string[]][] = [['attached', attached]];
  // Rows that are gone from the source stay in what is read by a cursor, with or without partitions.
  if (follows) {
    changes.push(['detached or dropped', goneFrom(known, partitions)]);
    changes.push(['truncated or rewritten', rewrittenIn(known, partitions)]);
  }
  return changes.flatMap(([what, names]) => (names.length > 0 ? [`${what} (${listOf(names)})`] : []));
}

function goneFrom(known: DetailHistory['partitions'], partitions: readonly Partition[]): string[] {
  const now = new Set(partitions.map(({ id }) => id));
  return Object.entries(known).flatMap(([id, [name]]) => (now.has(id) ? [] : [name]));
}

function rewrittenIn(known: DetailHistory['partitions'], partitions: readonly Partition[]): string[] {
  const kept = partitions.filter(({ id }) => known[id]);
  const rewritten = kept.filter(({ id, file }) => known[id]![1] !== file);
  // Of the whole table, the log tells, or the new types of its columns do.
  const isWhole = kept.length > 1 && rewritten.length === kept.length;
  // It may have been unlogged while it got its first rows.
  const since = partitions.filter((one) => !known[one.id] && !one.attached && one.rewritten);
  return [...(isWhole ? [] : rewritten), ...since].map(({ name }) => name);
}

function renamedLabels(
  known: DetailHistory['enum_labels'],
  labels: readonly EnumLabel[],
  plan: TransferPlan,
): string[] {
  const read = new Set(plan.columns.map(({ field }) => field.path[0]));
  return labels.flatMap(({ id, column, label }) => {
    const before = known[id];
    return before === undefined || before === label || !read.has(column) ? [] : [`${column} (${before} to ${label})`];
  });
}

const SHOWN = 5;

function listOf(names: readonly string[]): string {
  const more = names.length > SHOWN ? ` and ${inWords(names.length - SHOWN)} more` : '';
  return `${names.slice(0, SHOWN).join(', ')}${more}`;
}
