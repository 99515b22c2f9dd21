import { Autocomplete, Button, Select } from '@mantine/core';
import { useState } from 'react';
import { pluralize } from '../../components/format.ts';
import { labelOf, wordsOf } from '../../components/status.tsx';
import { MASKING_OPTIONS } from '../../streams/fields-editor.tsx';
import { type WizardStream, writeModes } from './proposal.ts';
import type { DestinationSyncMode, Stream, StreamEdit } from '../../streams/stream.ts';

interface BulkSettingsProps {
  rows: WizardStream[];
  destination_modes: readonly DestinationSyncMode[];
  apply: (by: (row: WizardStream) => StreamEdit | null) => void;
  close: () => void;
}

type Masking = Stream['fields'][number]['masking'];
const UNCHANGED = { value: '', label: 'Keep current' };
const options = (values: readonly string[]) => [
  UNCHANGED,
  ...values.map((value) => ({ value, label: labelOf(value) })),
];

/** Settings for many streams at once. Streams that do not support them keep their settings, with the reason shown. */
export function BulkSettings({ rows, destination_modes, apply, close }: BulkSettingsProps) {
  const [read, setRead] = useState<string>('');
  const [write, setWrite] = useState<string>('');
  const [cursor, setCursor] = useState('');
  const [field, setField] = useState('');
  const [masking, setMasking] = useState<string>('');
  const edits = { read, write, cursor: cursor.trim(), field: field.trim(), masking, destination_modes };
  const problems = rows.flatMap((row) => {
    const edit = editOf(row, edits);
    return typeof edit === 'string' ? [`${row.key} ${edit}`] : [];
  });
  const applicable = rows.length - problems.length;
  const isEdited = read !== '' || write !== '' || edits.cursor !== '' || (edits.field !== '' && masking !== '');
  return (
    <div className="bulk" role="group" aria-label="Bulk edit settings">
      <div className="fields">
        <Select
          label="Sync mode"
          data={options(['full_refresh', 'incremental'])}
          value={read}
          onChange={(value) => setRead(value ?? '')}
        />
        <Select
          label="Write mode"
          data={options(destination_modes.length > 0 ? destination_modes : WRITES)}
          value={write}
          onChange={(value) => setWrite(value ?? '')}
        />
        <Autocomplete
          label="Cursor field"
          placeholder="updated_at"
          data={namesOf(rows, true)}
          limit={20}
          value={cursor}
          onChange={setCursor}
        />
        <Autocomplete
          label="Field to mask"
          placeholder="email"
          data={namesOf(rows, false)}
          limit={20}
          value={field}
          onChange={setField}
        />
        <Select
          label="Masking"
          data={[UNCHANGED, ...MASKING_OPTIONS]}
          value={masking}
          disabled={edits.field === ''}
          onChange={(value) => setMasking(value ?? '')}
        />
      </div>
      <div className="form-foot">
        <span className="dimmed grow" role="status">
          {isEdited && problems.length > 0 && describeProblems(problems, rows.length)}
        </span>
        <Button variant="default" size="xs" onClick={close}>
          Cancel
        </Button>
        <Button
          size="xs"
          disabled={!isEdited || applicable === 0}
          onClick={() => {
            apply((row) => {
              const edit = editOf(row, edits);
              return typeof edit === 'string' ? null : edit;
            });
            close();
          }}
        >
          Apply to {pluralize(isEdited ? applicable : rows.length, 'stream')}
        </Button>
      </div>
    </div>
  );
}

const WRITES: DestinationSyncMode[] = ['append', 'overwrite', 'append_dedup', 'update', 'soft_delete'];

function describeProblems(problems: string[], total: number): string {
  const keep = problems.length === 1 ? 'keeps its settings' : 'keep their settings';
  const more = problems.length > 1 ? `, and ${problems.length - 1} more` : '';
  return `${problems.length} of ${total} ${keep}: ${problems[0]}${more}`;
}

interface BulkEdit {
  read: string;
  write: string;
  cursor: string;
  field: string;
  masking: string;
  destination_modes: readonly DestinationSyncMode[];
}

/** The edit for one stream, or why it does not apply: `has no updated_at`. */
function editOf({ item, stream }: WizardStream, edits: BulkEdit): StreamEdit | string {
  const { read, write, cursor, field, masking } = edits;
  const edit: StreamEdit = {};
  const sync_mode = (read || stream.sync_mode) as Stream['sync_mode'];
  const path = (name: string) => item.fields.find((one) => one.path.join('.') === name)?.path;
  if (read !== '') {
    if (!item.supported_sync_modes.includes(sync_mode)) return `does not support ${wordsOf(sync_mode)}`;
    edit.sync_mode = sync_mode;
  }
  if (write !== '') {
    const mode = write as DestinationSyncMode;
    if (!writeModes(sync_mode, edits.destination_modes).includes(mode)) return `does not support ${wordsOf(mode)}`;
    edit.destination_sync_mode = mode;
  }
  if (cursor !== '' && !item.source_defined_cursor) {
    const found = path(cursor);
    if (!found) return `has no ${cursor}`;
    edit.cursor_field = found;
  }
  if (field !== '' && masking !== '') {
    const found = path(field);
    if (!found) return `has no ${field}`;
    const before = stream.fields.find((one) => one.path.join('.') === field);
    const others = stream.fields.filter((one) => one.path.join('.') !== field);
    edit.fields = [...others, { ...before, path: found, masking: masking as Masking }];
  }
  return edit;
}

/** Field names, the most frequent first. */
function namesOf(rows: WizardStream[], cursors: boolean): string[] {
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
