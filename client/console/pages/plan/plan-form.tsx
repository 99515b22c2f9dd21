import { Button, MultiSelect, NumberInput, SegmentedControl, Select, Switch, TextInput } from '@mantine/core';
import type { FormEvent } from 'react';
import type { RouterInputs, RouterOutputs } from '../../api.ts';
import { Icon } from '../../components/icon.tsx';
import { Section } from '../../components/page.tsx';

type Parameters = RouterInputs['runs']['preview']['parameters'];
type Options = RouterOutputs['runs']['splitOptions'];
type Stream = RouterOutputs['connections']['get']['streams'][number];

/** As it stands in the form. */
export interface PlanDraft {
  start_date: string;
  end_date: string;
  unit: Options['default_unit'];
  size: number;
  stream_ids: string[];
  mode: NonNullable<Parameters['mode']>;
  order: NonNullable<Parameters['order']>;
  reprocess: NonNullable<Parameters['reprocess']>;
  max_parallel_runs: number;
  update_cursor: boolean;
  clear_destination: boolean;
  on_chunk_failure: NonNullable<Parameters['on_chunk_failure']>;
  reason: string;
}

const DAY_MS = 86_400_000;
const isoDay = (at: number) => new Date(at).toISOString().slice(0, 10);

export const initialPlan = (): PlanDraft => ({
  start_date: isoDay(Date.now() - 30 * DAY_MS),
  end_date: isoDay(Date.now()),
  unit: 'week',
  size: 1,
  stream_ids: [],
  mode: 'backfill',
  order: 'chronological',
  reprocess: 'all',
  max_parallel_runs: 1,
  update_cursor: false,
  clear_destination: false,
  on_chunk_failure: 'stop',
  reason: '',
});

export function parametersOf({ unit, size, ...draft }: PlanDraft): Parameters {
  const isWhole = draft.mode === 'full_refresh';
  return {
    ...draft,
    start_date: isWhole ? null : draft.start_date || null,
    end_date: isWhole ? null : draft.end_date || null,
    split: isWhole ? null : { unit, size },
    stream_ids: draft.stream_ids.length === 0 ? null : draft.stream_ids,
    clear_destination: isWhole && draft.clear_destination,
    reason: draft.reason.trim() || null,
  };
}

const MODES: Record<PlanDraft['mode'], { label: string; told: string }> = {
  backfill: { label: 'Backfill', told: 'The rows of certain days, beside the usual runs.' },
  incremental: { label: 'Incremental', told: 'What is new, as in a usual run, within certain days.' },
  full_refresh: { label: 'Full refresh', told: 'Every row anew, whatever its day.' },
};
const REPROCESS: Record<PlanDraft['reprocess'], string> = {
  all: 'All chunks',
  missing: 'Only days that were never loaded',
  failed: 'Only days whose last run failed',
};
const ORDERS: Record<PlanDraft['order'], string> = {
  chronological: 'Oldest first',
  reverse_chronological: 'Newest first',
};

interface PlanFormProps {
  draft: PlanDraft;
  onChange: (draft: PlanDraft) => void;
  options: Options;
  streams: Stream[];
  problems: Record<string, string>;
  isBusy: boolean;
  onSubmit: () => void;
}

export function PlanForm({ draft, onChange, options, streams, problems, isBusy, onSubmit }: PlanFormProps) {
  const set = (change: Partial<PlanDraft>) => onChange({ ...draft, ...change });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit();
  };
  const isWhole = draft.mode === 'full_refresh';
  return (
    <Section title="What it should do">
      <form className="stack" onSubmit={submit} noValidate>
        <div className="row">
          <SegmentedControl
            aria-label="Mode"
            data={options.modes.map((mode) => ({ value: mode, label: MODES[mode].label }))}
            value={draft.mode}
            onChange={(mode) => set({ mode })}
          />
          <span className="dimmed">{MODES[draft.mode].told}</span>
        </div>
        {!isWhole && <WindowFields {...{ draft, set, options, problems }} />}
        <div className="fields">
          <MultiSelect
            className="wide"
            label="Streams"
            placeholder={draft.stream_ids.length === 0 ? 'All that are loaded' : ''}
            data={streams.map(({ id, name, namespace }) => ({
              value: id,
              label: namespace === null ? name : `${namespace}.${name}`,
            }))}
            searchable
            clearable
            limit={100}
            value={draft.stream_ids}
            onChange={(stream_ids) => set({ stream_ids })}
          />
        </div>
        <details className="fold">
          <summary>More: order, chunks that were loaded, failures, cursor</summary>
          <MoreFields {...{ draft, set, options, isWhole }} />
        </details>
        <div className="form-foot">
          <Button type="submit" loading={isBusy} leftSection={<Icon name="calendar" size={16} />}>
            Show what it would do
          </Button>
        </div>
      </form>
    </Section>
  );
}

interface FieldsProps {
  draft: PlanDraft;
  set: (change: Partial<PlanDraft>) => void;
  options: Options;
}

const WindowFields = ({ draft, set, options, problems }: FieldsProps & Pick<PlanFormProps, 'problems'>) => (
  <div className="fields">
    <TextInput
      type="date"
      label="From"
      value={draft.start_date}
      error={problems.start_date}
      onChange={(event) => set({ start_date: event.currentTarget.value })}
    />
    <TextInput
      type="date"
      label="To, inclusive"
      value={draft.end_date}
      error={problems.end_date}
      onChange={(event) => set({ end_date: event.currentTarget.value })}
    />
    <Select
      label="Split by"
      data={options.units.map(({ value, label }) => ({ value, label }))}
      value={draft.unit}
      onChange={(unit) => set({ unit: unit as PlanDraft['unit'] })}
    />
    {draft.unit !== 'none' && (
      <NumberInput
        label={`${draft.unit[0]!.toUpperCase()}${draft.unit.slice(1)}s of a chunk`}
        min={1}
        max={365}
        value={draft.size}
        onChange={(size) => set({ size: Number(size) || 1 })}
      />
    )}
  </div>
);

const labelled = (values: readonly string[], labels: Record<string, string>) =>
  values.map((value) => ({ value, label: labels[value] ?? value }));

const MoreFields = ({ draft, set, options, isWhole }: FieldsProps & { isWhole: boolean }) => (
  <div className="fields">
    <Select
      label="Order"
      data={labelled(options.orders, ORDERS)}
      value={draft.order}
      onChange={(order) => set({ order: order as PlanDraft['order'] })}
    />
    <Select
      label="Which chunks"
      data={labelled(options.reprocess_options, REPROCESS)}
      value={draft.reprocess}
      onChange={(reprocess) => set({ reprocess: reprocess as PlanDraft['reprocess'] })}
    />
    <Select
      label="When a chunk fails"
      data={labelled(['stop', 'continue'], { stop: 'The rest is not started', continue: 'The rest goes on' })}
      value={draft.on_chunk_failure}
      onChange={(value) => set({ on_chunk_failure: value as PlanDraft['on_chunk_failure'] })}
    />
    <NumberInput
      label="Chunks side by side"
      min={1}
      max={options.max_parallel_runs}
      value={draft.max_parallel_runs}
      onChange={(value) => set({ max_parallel_runs: Number(value) || 1 })}
    />
    <Switch
      label="Move the cursor"
      description="The next usual run goes on from where this one ends"
      checked={draft.update_cursor}
      onChange={(event) => set({ update_cursor: event.currentTarget.checked })}
    />
    {isWhole && (
      <Switch
        label="Clear the destination first"
        description="Its tables are emptied before they are loaded"
        checked={draft.clear_destination}
        onChange={(event) => set({ clear_destination: event.currentTarget.checked })}
      />
    )}
    <TextInput
      className="wide"
      label="Reason"
      placeholder="For those who look at it later"
      maxLength={500}
      value={draft.reason}
      onChange={(event) => set({ reason: event.currentTarget.value })}
    />
  </div>
);
