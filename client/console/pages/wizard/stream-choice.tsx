import { Button, Checkbox, SegmentedControl } from '@mantine/core';
import { type ReactNode, useDeferredValue, useState } from 'react';
import { plural } from '../../components/format.ts';
import { SearchField } from '../../components/search-field.tsx';
import { Icon } from '../../components/icon.tsx';
import type { StreamEdit } from '../../streams/stream-editor.tsx';
import { BulkSettings } from './bulk-settings.tsx';
import { type Edits, type Row, withEdit } from './proposal.ts';
import { StreamRows } from './stream-rows.tsx';
import type { Choices } from './use-choices.ts';

interface StreamChoiceProps {
  choices: Choices;
  setEdits: (edits: Edits) => void;
  /** When the streams were discovered. */
  found: ReactNode;
}

type Shown = 'all' | 'selected' | 'problems';

/** Streams, however many: searched, chosen, and set one by one or many at once. */
export function StreamChoice({ choices, setEdits, found }: StreamChoiceProps) {
  const { rows, edits, selected, problems } = choices;
  const [text, setText] = useState('');
  const [shown, setShown] = useState<Shown>('all');
  const [isBulk, setBulk] = useState(false);
  const wanted = useDeferredValue(text.trim().toLowerCase());
  const among = { all: rows, selected, problems }[shown];
  const inSight = among.filter(({ key }) => key.toLowerCase().includes(wanted));
  const chosen = inSight.filter(({ stream }) => stream.selected);
  const change = (which: readonly Row[], by: (row: Row) => StreamEdit | null) => {
    const after: Record<string, StreamEdit> = { ...edits };
    for (const row of which) {
      const edit = by(row);
      if (edit) after[row.key] = withEdit(after[row.key] ?? {}, edit);
    }
    setEdits(after);
  };
  return (
    <section className="card stack" aria-label="Streams">
      <Finder {...{ text, setText, shown, setShown, choices, found }} />
      <div className="between stream-bar">
        <Checkbox
          label={`${plural(chosen.length, 'stream')} of ${inSight.length} in sight chosen`}
          checked={inSight.length > 0 && chosen.length === inSight.length}
          indeterminate={chosen.length > 0 && chosen.length < inSight.length}
          disabled={inSight.length === 0}
          onChange={(event) => {
            const is = event.currentTarget.checked;
            change(inSight, () => ({ selected: is }));
          }}
        />
        <Button
          variant="default"
          size="xs"
          aria-expanded={isBulk}
          disabled={chosen.length === 0}
          leftSection={<Icon name="edit" size={14} />}
          onClick={() => setBulk(!isBulk)}
        >
          Set many at once
        </Button>
      </div>
      {isBulk && chosen.length > 0 && (
        <BulkSettings
          rows={chosen}
          destination_modes={choices.destination_modes}
          apply={(by) => change(chosen, by)}
          close={() => setBulk(false)}
        />
      )}
      {inSight.length === 0 ? (
        <p className="dimmed nothing">No stream is like that.</p>
      ) : (
        <StreamRows
          rows={inSight}
          destination_modes={choices.destination_modes}
          isReverse={choices.isReverse}
          change={(row, edit) => change([row], () => edit)}
        />
      )}
    </section>
  );
}

interface FinderProps extends Pick<StreamChoiceProps, 'choices' | 'found'> {
  text: string;
  setText: (text: string) => void;
  shown: Shown;
  setShown: (shown: Shown) => void;
}

function Finder({ text, setText, shown, setShown, choices, found }: FinderProps) {
  const { rows, selected, problems } = choices;
  const which: { value: Shown; label: string }[] = [
    { value: 'all', label: `All ${rows.length}` },
    { value: 'selected', label: `Chosen ${selected.length}` },
  ];
  if (problems.length > 0 || shown === 'problems') {
    which.push({ value: 'problems', label: `To be settled ${problems.length}` });
  }
  return (
    <div className="row">
      <SearchField label="Search streams" placeholder="Search streams" isWide value={text} onChange={setText} />
      <SegmentedControl
        aria-label="Which streams are shown"
        size="xs"
        data={which}
        value={shown}
        onChange={(value) => setShown(value)}
      />
      <span className="dimmed row found">{found}</span>
    </div>
  );
}
