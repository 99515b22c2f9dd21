import { Button, MultiSelect, NumberInput, SegmentedControl, Select, Switch, TextInput } from '@mantine/core';
import type { FormEvent } from 'react';
import type { RouterInputs, RouterOutputs } from '../../api.ts';
import { Icon } from '../../components/icon.tsx';
import { Section } from '../../components/page.tsx';

type Parameters = RouterInputs['runs']['preview']['parameters'];
type Options = RouterOutputs['runs']['splitOptions'];
type Stream = RouterOutputs['connections']['get']['streams'][number];

/** The values of the form. */
export interface CustomRunDraft {
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

export const initialDraft = (): CustomRunDraft => ({
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

export function parametersOf({ unit, size, ...draft }: CustomRunDraft): Parameters {
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

const MODES: Record<CustomRunDraft['mode'], { label: string; help: string }> = {
  backfill: { label: 'Backfill', help: 'Loads the rows of a date range, alongside regular syncs.' },
  incremental: { label: 'Incremental', help: 'Loads new rows, like a regular sync, within a date range.' },
  full_refresh: { label: 'Full refresh', help: 'Reloads every row, whatever its date.' },
};
const REPROCESS: Record<CustomRunDraft['reprocess'], string> = {
  all: 'All chunks',
  missing: 'Only chunks that were never loaded',
  failed: 'Only chunks whose last run failed',
};
const ORDERS: Record<CustomRunDraft['order'], string> = {
  chronological: 'Oldest first',
  reverse_chronological: 'Newest first',
};

interface CustomRunFormProps {
  draft: CustomRunDraft;
  onChange: (draft: CustomRunDraft) => void;
  options: Options;
  streams: Stream[];
  problems: Record<string, string>;
  isBusy: boolean;
  onSubmit: () => void;
}

export function CustomRunForm({ draft, onChange, options, streams, problems, isBusy, onSubmit }: CustomRunFormProps) {
  const set = (change: Partial<CustomRunDraft>) => onChange({ ...draft, ...change });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit();
  };
  const isWhole = draft.mode === 'full_refresh';
  return (
    <Section title="Settings">
      <form className="stack" onSubmit={submit} noValidate>
        <div className="row">
          <SegmentedControl
            aria-label="Mode"
            data={options.modes.map((mode) => ({ value: mode, label: MODES[mode].label }))}
            value={draft.mode}
            onChange={(mode) => set({ mode })}
          />
          <span className="dimmed">{MODES[draft.mode].help}</span>
        </div>
        {!isWhole && <WindowFields {...{ draft, set, options, problems }} />}
        <div className="fields">
          <MultiSelect
            className="wide"
            label="Streams"
            placeholder={draft.stream_ids.length === 0 ? 'All selected streams' : ''}
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
          <summary>Advanced</summary>
          <AdvancedFields {...{ draft, set, options, isWhole }} />
        </details>
        <div className="form-foot">
          <Button type="submit" loading={isBusy} leftSection={<Icon name="calendar" size={16} />}>
            Preview
          </Button>
        </div>
      </form>
    </Section>
  );
}

interface FieldsProps {
  draft: CustomRunDraft;
  set: (change: Partial<CustomRunDraft>) => void;
  options: Options;
}

const WindowFields = ({ draft, set, options, problems }: FieldsProps & Pick<CustomRunFormProps, 'problems'>) => (
  <div className="fields">
    <TextInput
      type="date"
      label="Start date"
      value={draft.start_date}
      error={problems.start_date}
      onChange={(event) => set({ start_date: event.currentTarget.value })}
    />
    <TextInput
      type="date"
      label="End date (inclusive)"
      value={draft.end_date}
      error={problems.end_date}
      onChange={(event) => set({ end_date: event.currentTarget.value })}
    />
    <Select
      label="Split by"
      data={options.units.map(({ value, label }) => ({ value, label }))}
      value={draft.unit}
      onChange={(unit) => set({ unit: unit as CustomRunDraft['unit'] })}
    />
    {draft.unit !== 'none' && (
      <NumberInput
        label={`${draft.unit[0]!.toUpperCase()}${draft.unit.slice(1)}s per chunk`}
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

const AdvancedFields = ({ draft, set, options, isWhole }: FieldsProps & { isWhole: boolean }) => (
  <div className="fields">
    <Select
      label="Order"
      data={labelled(options.orders, ORDERS)}
      value={draft.order}
      onChange={(order) => set({ order: order as CustomRunDraft['order'] })}
    />
    <Select
      label="Chunks"
      data={labelled(options.reprocess_options, REPROCESS)}
      value={draft.reprocess}
      onChange={(reprocess) => set({ reprocess: reprocess as CustomRunDraft['reprocess'] })}
    />
    <Select
      label="If a chunk fails"
      data={labelled(['stop', 'continue'], {
        stop: 'Skip the remaining chunks',
        continue: 'Continue with the remaining chunks',
      })}
      value={draft.on_chunk_failure}
      onChange={(value) => set({ on_chunk_failure: value as CustomRunDraft['on_chunk_failure'] })}
    />
    <NumberInput
      label="Parallel chunks"
      min={1}
      max={options.max_parallel_runs}
      value={draft.max_parallel_runs}
      onChange={(value) => set({ max_parallel_runs: Number(value) || 1 })}
    />
    <Switch
      label="Update cursor"
      description="The next sync continues where this run ends"
      checked={draft.update_cursor}
      onChange={(event) => set({ update_cursor: event.currentTarget.checked })}
    />
    {isWhole && (
      <Switch
        label="Clear destination tables first"
        description="Deletes their rows before loading"
        checked={draft.clear_destination}
        onChange={(event) => set({ clear_destination: event.currentTarget.checked })}
      />
    )}
    <TextInput
      className="wide"
      label="Reason"
      placeholder="Shown with the run"
      maxLength={500}
      value={draft.reason}
      onChange={(event) => set({ reason: event.currentTarget.value })}
    />
  </div>
);
