import { Button, Checkbox, SegmentedControl } from '@mantine/core';
import { type ReactNode, useDeferredValue, useState } from 'react';
import { formatCount, pluralize } from '../../components/format.ts';
import { SearchField } from '../../components/search-field.tsx';
import { Icon } from '../../components/icon.tsx';
import { BulkSettings } from './bulk-settings.tsx';
import { type StreamEdits, type WizardStream, withEdit } from './proposal.ts';
import { StreamRows } from './stream-rows.tsx';
import type { Selection } from './use-selection.ts';
import type { StreamEdit } from '../../streams/stream.ts';

interface StreamSelectionProps {
  selection: Selection;
  setEdits: (edits: StreamEdits) => void;
  /** Age of the schema, and the button to refresh it. */
  freshness: ReactNode;
}

type Shown = 'all' | 'selected' | 'problems';

/** Searches, selects and configures streams, one by one or in bulk. */
export function StreamSelection({ selection, setEdits, freshness }: StreamSelectionProps) {
  const { draft, source = null, rows, edits, selected, problems } = selection;
  const [text, setText] = useState('');
  const [shown, setShown] = useState<Shown>('all');
  const [isBulk, setBulk] = useState(false);
  const wanted = useDeferredValue(text.trim().toLowerCase());
  const candidates = { all: rows, selected, problems }[shown];
  const visible = candidates.filter(({ key }) => key.toLowerCase().includes(wanted));
  const selectedVisible = visible.filter(({ stream }) => stream.selected);
  const change = (which: readonly WizardStream[], by: (row: WizardStream) => StreamEdit | null) => {
    const after: Record<string, StreamEdit> = { ...edits };
    for (const row of which) {
      const edit = by(row);
      if (edit) after[row.key] = withEdit(after[row.key] ?? {}, edit);
    }
    setEdits(after);
  };
  return (
    <section className="card stack" aria-label="Streams">
      <StreamFilters {...{ text, setText, shown, setShown, selection, freshness }} />
      <div className="between stream-bar">
        <Checkbox
          label={`${formatCount(selectedVisible.length)} of ${pluralize(visible.length, 'stream')} selected`}
          checked={visible.length > 0 && selectedVisible.length === visible.length}
          indeterminate={selectedVisible.length > 0 && selectedVisible.length < visible.length}
          disabled={visible.length === 0}
          onChange={(event) => {
            const is = event.currentTarget.checked;
            change(visible, () => ({ selected: is }));
          }}
        />
        <Button
          variant="default"
          size="xs"
          aria-expanded={isBulk}
          disabled={selectedVisible.length === 0}
          leftSection={<Icon name="edit" size={14} />}
          onClick={() => setBulk(!isBulk)}
        >
          Bulk edit
        </Button>
      </div>
      {isBulk && selectedVisible.length > 0 && (
        <BulkSettings
          rows={selectedVisible}
          destination_modes={selection.destination_modes}
          apply={(by) => change(selectedVisible, by)}
          close={() => setBulk(false)}
        />
      )}
      {visible.length === 0 ? (
        <p className="dimmed nothing">No streams match</p>
      ) : (
        <StreamRows
          rows={visible}
          destination_modes={selection.destination_modes}
          isReverse={selection.isReverse}
          preview={
            source && {
              source_id: source.id,
              destination_id: draft.destination_id,
              destination_schema: selection.destination_schema || null,
              table_prefix: draft.table_prefix,
            }
          }
          change={(row, edit) => change([row], () => edit)}
        />
      )}
    </section>
  );
}

interface StreamFiltersProps extends Pick<StreamSelectionProps, 'selection' | 'freshness'> {
  text: string;
  setText: (text: string) => void;
  shown: Shown;
  setShown: (shown: Shown) => void;
}

function StreamFilters({ text, setText, shown, setShown, selection, freshness }: StreamFiltersProps) {
  const { rows, selected, problems } = selection;
  const which: { value: Shown; label: string }[] = [
    { value: 'all', label: `All ${rows.length}` },
    { value: 'selected', label: `Selected ${selected.length}` },
  ];
  if (problems.length > 0 || shown === 'problems') {
    which.push({ value: 'problems', label: `${problems.length} need attention` });
  }
  return (
    <div className="row">
      <SearchField label="Search streams" placeholder="Search streams" isWide value={text} onChange={setText} />
      <SegmentedControl
        aria-label="Filter streams"
        size="xs"
        data={which}
        value={shown}
        onChange={(value) => setShown(value)}
      />
      <span className="dimmed row found">{freshness}</span>
    </div>
  );
}
