import { Button, NumberInput, Select, Switch, TagsInput, Textarea, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { useLocation } from 'wouter';
import { type RouterInputs, trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { Confirm } from '../../components/confirm.tsx';
import { Failure } from '../../components/failure.tsx';
import { FolderField } from '../connections/folder-field.tsx';
import { InexactValues } from '../../components/inexact-values.tsx';
import { optionsOf } from '../../components/options.ts';
import { NameField } from '../../components/name-field.tsx';
import { Section } from '../../components/page.tsx';
import { ScheduleEditor } from '../../schedule/schedule-editor.tsx';
import type { Schedule } from '../../schedule/schedule-fields.tsx';
import { problemOf } from '../../refused-field.ts';
import { useAction } from '../../use-action.ts';
import { DestinationSchema } from '../account-connectors/destination-schema.tsx';
import type { Connection } from '../../answers.ts';
import { VerificationField } from './verification-field.tsx';

type Update = Omit<RouterInputs['connections']['update'], 'connection_id'>;

const POLICIES = optionsOf<NonNullable<Update['schema_change_policy']>>({
  ignore: 'Review manually',
  propagate_columns: 'Add new columns',
  propagate_fully: 'Add new columns and streams',
  disable_connection: 'Disable the connection',
});

const REJECTED_ROWS = optionsOf<NonNullable<Update['rejected_rows_policy']>>({
  fail: 'Fail the stream',
  keep: 'Keep in the table _rejected',
});

const CONSISTENCY = optionsOf<NonNullable<Update['consistency']>>({
  run: 'One moment for all tables',
  stream: 'Each table on its own',
});

export function SettingsTab({ connection }: { connection: Connection }) {
  const mayUpdate = usePermission('connections.update');
  // Only edits are sent. The revision that they began with lets the service refuse them after a concurrent change.
  const [edits, setEdits] = useState<Update>({});
  const [revision, setRevision] = useState(connection.revision);
  const update = useAction(trpc.connections.update, {
    done: 'Settings saved',
    failed: null,
    after: (saved) => {
      setEdits({});
      setRevision(saved.revision);
    },
    undo: { input: (sent) => former(connection, sent) },
  });
  const now = { ...connection, ...edits } as Settings;
  const isChanged = Object.keys(edits).length > 0;
  const set = (change: Update) => {
    // What was just saved can be newer than what was last read.
    if (!isChanged) setRevision((known) => Math.max(known, connection.revision));
    setEdits((before) => ({ ...before, ...change }));
  };
  const save = (event: FormEvent) => {
    event.preventDefault();
    update.mutate({ connection_id: connection.id, ...edits, revision });
  };
  return (
    <div className="stack">
      <form className="stack" onSubmit={save}>
        <fieldset className="bare-fieldset stack" disabled={!mayUpdate}>
          <Section
            title="Schedule"
            lead={connection.status === 'active' ? null : 'The schedule takes effect when the connection is resumed.'}
          >
            <ScheduleEditor
              value={edits.schedule ?? scheduleOf(connection.schedule)}
              onChange={(schedule) => set({ schedule })}
            />
            <VerificationField
              value={edits.verification_schedule}
              stored={connection.verification_schedule}
              problem={problemOf(update.error, 'verification_schedule')}
              onChange={(verification_schedule) => set({ verification_schedule })}
            />
          </Section>
          <Section title="General">
            <GeneralFields {...{ now, set }} error={update.error} />
          </Section>
          <Section title="Loading">
            <LoadingFields {...{ connection, now, set }} error={update.error} />
          </Section>
        </fieldset>
        {update.error && <Failure title="Settings not saved" error={update.error} />}
        {isChanged && (
          <div className="form-foot sticky-foot">
            <Button variant="default" onClick={() => setEdits({})}>
              Discard changes
            </Button>
            <Button type="submit" loading={update.isPending}>
              Save changes
            </Button>
          </div>
        )}
      </form>
      <Deletion connection={connection} />
    </div>
  );
}

/** The stored values of the settings that are sent. */
function former(connection: Connection, { connection_id, ...sent }: RouterInputs['connections']['update']) {
  const { schedule, verification_schedule } = connection;
  const stored: Record<string, unknown> = {
    ...connection,
    schedule: scheduleOf(schedule),
    verification_schedule: verification_schedule && scheduleOf(verification_schedule),
  };
  const settings = Object.fromEntries(Object.keys(sent).map((key) => [key, stored[key]])) as Update;
  return { ...settings, connection_id, revision: connection.revision };
}

/** Without the read-only keys. */
const scheduleOf = ({ description: _description, next_runs: _next_runs, ...schedule }: Connection['schedule']) =>
  schedule as Schedule;

type Settings = Pick<
  Connection,
  | 'name'
  | 'tags'
  | 'folder'
  | 'description'
  | 'notify_on_failure'
  | 'destination_schema'
  | 'table_prefix'
  | 'schema_change_policy'
  | 'inexact_values'
  | 'rejected_rows_policy'
  | 'max_rejected_rows'
  | 'consistency'
  | 'backfill_days'
  | 'max_parallel_streams'
  | 'start_date'
>;

interface FieldsProps {
  now: Settings;
  set: (change: Update) => void;
}

const GeneralFields = ({ now, set, error }: FieldsProps & { error: unknown }) => (
  <div className="fields">
    <NameField value={now.name} onChange={(name) => set({ name })} />
    <TagsInput label="Tags" placeholder="Add tag" value={now.tags} onChange={(tags) => set({ tags })} />
    <FolderField
      value={now.folder ?? ''}
      problem={problemOf(error, 'folder')}
      onChange={(folder) => set({ folder: folder || null })}
    />
    <Textarea
      className="wide"
      label="Description"
      autosize
      minRows={2}
      value={now.description ?? ''}
      onChange={(event) => set({ description: event.currentTarget.value || null })}
    />
    <Switch
      label="Notify on failure"
      description="Use this account’s triggers"
      checked={now.notify_on_failure}
      onChange={(event) => set({ notify_on_failure: event.currentTarget.checked })}
    />
  </div>
);

const LoadingFields = ({ connection, now, set, error }: FieldsProps & { connection: Connection; error: unknown }) => (
  <div className="fields">
    <DestinationSchema
      destination_id={connection.destination.id}
      stored={connection.destination_schema ?? ''}
      value={now.destination_schema ?? ''}
      onChange={(schema) => set({ destination_schema: schema || null })}
    />
    <TextInput
      label="Table prefix"
      value={now.table_prefix}
      onChange={(event) => set({ table_prefix: event.currentTarget.value })}
    />
    <Select
      label="Schema change policy"
      data={POLICIES}
      allowDeselect={false}
      value={now.schema_change_policy}
      onChange={(policy) => set({ schema_change_policy: policy as Update['schema_change_policy'] })}
    />
    <InexactValues value={now.inexact_values} onChange={(inexact_values) => set({ inexact_values })} />
    <Select
      label="Rejected rows"
      description="Rows that the destination cannot load"
      data={REJECTED_ROWS}
      allowDeselect={false}
      value={now.rejected_rows_policy}
      error={problemOf(error, 'rejected_rows_policy')}
      onChange={(policy) => set({ rejected_rows_policy: policy as Update['rejected_rows_policy'] })}
    />
    {now.rejected_rows_policy === 'keep' && (
      <NumberInput
        label="Maximum of rejected rows"
        description="More of them in one stream of a run fail it"
        min={1}
        max={100_000}
        value={now.max_rejected_rows}
        onChange={(rows) => set({ max_rejected_rows: Number(rows) })}
      />
    )}
    <NumberInput
      label="Lookback (days)"
      description="Reads this many days before the cursor again in every run"
      min={0}
      max={365}
      value={now.backfill_days}
      onChange={(days) => set({ backfill_days: Number(days) })}
    />
    <Select
      label="Full refreshes"
      description={
        connection.consistency !== connection.consistency_in_effect && now.consistency === 'run'
          ? 'Source or destination cannot share one moment'
          : undefined
      }
      data={CONSISTENCY}
      allowDeselect={false}
      value={now.consistency}
      onChange={(consistency) => set({ consistency: consistency as Update['consistency'] })}
    />
    <NumberInput
      label="Parallel streams"
      min={1}
      max={50}
      value={now.max_parallel_streams}
      onChange={(streams) => set({ max_parallel_streams: Number(streams) })}
    />
    <TextInput
      label="Start date"
      type="date"
      value={now.start_date ?? ''}
      onChange={(event) => set({ start_date: event.currentTarget.value || null })}
    />
  </div>
);

function Deletion({ connection }: { connection: Connection }) {
  const mayDelete = usePermission('connections.delete');
  const [, navigate] = useLocation();
  const remove = useAction(trpc.connections.delete, {
    done: 'Connection deleted',
    failed: 'Connection not deleted',
    refresh: [trpc.connections.summaries],
    after: () => navigate('/console/connections'),
  });
  return (
    <Section title="Delete" lead="Stops the current run. Loaded rows stay in the destination.">
      <Confirm
        title={`Delete “${connection.name}”?`}
        action="Delete connection"
        onConfirm={() => remove.mutate({ connection_id: connection.id })}
        trigger={(open) => (
          <Button color="red" variant="light" disabled={!mayDelete} loading={remove.isPending} onClick={open}>
            Delete connection
          </Button>
        )}
      >
        This permanently deletes its schedule, settings and cursors.
      </Confirm>
    </Section>
  );
}
