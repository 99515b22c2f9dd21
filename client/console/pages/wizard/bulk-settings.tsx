import { Autocomplete, Button, Select } from '@mantine/core';
import { useState } from 'react';
import { plural } from '../../components/format.ts';
import { wordsOf } from '../../components/status.tsx';
import { MASKS } from '../../streams/fields-editor.tsx';
import type { DestinationSyncMode, Stream, StreamEdit } from '../../streams/stream-editor.tsx';
import { type Row, writeModes } from './proposal.ts';

interface BulkSettingsProps {
  rows: Row[];
  destination_modes: readonly DestinationSyncMode[];
  apply: (by: (row: Row) => StreamEdit | null) => void;
  close: () => void;
}

type Masking = Stream['fields'][number]['masking'];
const UNCHANGED = { value: '', label: 'Leave as it is' };
const options = (values: readonly string[]) => [
  UNCHANGED,
  ...values.map((value) => ({ value, label: wordsOf(value) })),
];

/** One decision for many streams; those that cannot be so stay as they are, and their number is told. */
export function BulkSettings({ rows, destination_modes, apply, close }: BulkSettingsProps) {
  const [read, setRead] = useState<string>('');
  const [write, setWrite] = useState<string>('');
  const [cursor, setCursor] = useState('');
  const [field, setField] = useState('');
  const [masking, setMasking] = useState<string>('');
  const wish = { read, write, cursor: cursor.trim(), field: field.trim(), masking, destination_modes };
  const able = rows.filter((row) => editOf(row, wish) !== null).length;
  const isAsked = read !== '' || write !== '' || wish.cursor !== '' || (wish.field !== '' && masking !== '');
  return (
    <div className="bulk" role="group" aria-label="Settings for many streams">
      <div className="fields">
        <Select
          label="Read"
          data={options(['full_refresh', 'incremental'])}
          value={read}
          onChange={(value) => setRead(value ?? '')}
        />
        <Select
          label="Write"
          data={options(destination_modes.length > 0 ? destination_modes : WRITES)}
          value={write}
          onChange={(value) => setWrite(value ?? '')}
        />
        <Autocomplete
          label="Cursor"
          placeholder="Name of the field"
          data={namesOf(rows, true)}
          limit={20}
          value={cursor}
          onChange={setCursor}
        />
        <Autocomplete
          label="Mask a field"
          placeholder="Such as email"
          data={namesOf(rows, false)}
          limit={20}
          value={field}
          onChange={setField}
        />
        <Select
          label="How it is masked"
          data={[UNCHANGED, ...MASKS]}
          value={masking}
          disabled={wish.field === ''}
          onChange={(value) => setMasking(value ?? '')}
        />
      </div>
      <div className="form-foot">
        <span className="dimmed grow" role="status">
          {isAsked && able < rows.length && `${rows.length - able} of ${rows.length} cannot be so and stay as they are`}
        </span>
        <Button variant="default" size="xs" onClick={close}>
          Close
        </Button>
        <Button
          size="xs"
          disabled={!isAsked || able === 0}
          onClick={() => {
            apply((row) => editOf(row, wish));
            close();
          }}
        >
          Set for {plural(isAsked ? able : rows.length, 'stream')}
        </Button>
      </div>
    </div>
  );
}

const WRITES: DestinationSyncMode[] = ['append', 'overwrite', 'append_dedup', 'update', 'soft_delete'];

interface Wish {
  read: string;
  write: string;
  cursor: string;
  field: string;
  masking: string;
  destination_modes: readonly DestinationSyncMode[];
}

/** What the wish means for one stream; null: it cannot be so. */
function editOf({ item, stream }: Row, wish: Wish): StreamEdit | null {
  const { read, write, cursor, field, masking } = wish;
  const edit: StreamEdit = {};
  const sync_mode = (read || stream.sync_mode) as Stream['sync_mode'];
  const path = (name: string) => item.fields.find((one) => one.path.join('.') === name)?.path;
  if (read !== '') {
    if (!item.supported_sync_modes.includes(sync_mode)) return null;
    edit.sync_mode = sync_mode;
  }
  if (write !== '') {
    const mode = write as DestinationSyncMode;
    if (!writeModes(sync_mode, wish.destination_modes).includes(mode)) return null;
    edit.destination_sync_mode = mode;
  }
  if (cursor !== '' && !item.source_defined_cursor) {
    const found = path(cursor);
    if (!found) return null;
    edit.cursor_field = found;
  }
  if (field !== '' && masking !== '') {
    const found = path(field);
    if (!found) return null;
    const before = stream.fields.find((one) => one.path.join('.') === field);
    const others = stream.fields.filter((one) => one.path.join('.') !== field);
    edit.fields = [...others, { ...before, path: found, masking: masking as Masking }];
  }
  return edit;
}

/** Names of fields, the most frequent first. */
function namesOf(rows: Row[], cursors: boolean): string[] {
  const counts = new Map<string, number>();
  for (const { item } of rows) {
    for (const { path, is_cursor_candidate } of item.fields) {
      if (cursors && !is_cursor_candidate) continue;
      const name = path.join('.');
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  return [...counts].toSorted((a, b) => b[1] - a[1]).map(([name]) => name);
}
