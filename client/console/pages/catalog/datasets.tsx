import { Button, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { client, trpc } from '../../api.ts';
import { Confirm } from '../../components/confirm.tsx';
import { Failure } from '../../components/failure.tsx';
import { pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { Section } from '../../components/page.tsx';
import { PreviewButton } from '../../streams/preview-button.tsx';
import { RowsTable } from '../../streams/rows-table.tsx';
import { usePermission } from '../../current-user.ts';
import { useAction } from '../../use-action.ts';
import type { Source } from './find-streams.ts';

type Dataset = Source['datasets'][number];

/** SQL queries of users that the source offers as streams. */
export function Datasets({ source }: { source: Source }) {
  const may = usePermission('sources.update');
  const [editing, setEditing] = useState<string | null>(null);
  const edited = editing === '' ? { name: '', sql: '' } : source.datasets.find(({ name }) => name === editing);
  return (
    <Section
      title="Datasets"
      lead="Queries of this source that connections load like a table"
      actions={
        <Button
          variant="default"
          leftSection={<Icon name="add" size={16} />}
          disabled={!may}
          onClick={() => setEditing('')}
        >
          New dataset
        </Button>
      }
    >
      <ul className="lines">
        {source.datasets.map(({ name, sql }) => (
          <li key={name}>
            <button
              type="button"
              className="link-button grow"
              aria-expanded={editing === name}
              onClick={() => setEditing(name)}
            >
              <b>{name}</b>
              <code className="rule-line" title={sql}>
                {sql}
              </code>
            </button>
          </li>
        ))}
      </ul>
      {edited && <DatasetEditor key={editing} source={source} dataset={edited} close={() => setEditing(null)} />}
    </Section>
  );
}

interface DatasetEditorProps {
  source: Source;
  /** An empty name: a new one. */
  dataset: Dataset;
  close: () => void;
}

function DatasetEditor({ source, dataset, close }: DatasetEditorProps) {
  const may = usePermission('sources.update');
  const [name, setName] = useState(dataset.name);
  const [sql, setSql] = useState(dataset.sql);
  const update = useAction(trpc.account_connectors.update, {
    done: 'Datasets saved',
    failed: null,
    after: close,
    undo: {
      // A deletion asks first: connections that load the dataset pause.
      input: async ({ account_connector_id, datasets = [] }) => {
        const now = await client.account_connectors.get.query({ connector_type: 'source', account_connector_id });
        if (datasets.length < now.datasets.length) return null;
        return { account_connector_id, revision: now.revision, datasets: now.datasets };
      },
    },
  });
  const others = source.datasets.filter((one) => one.name !== dataset.name);
  const store = (datasets: Dataset[]) =>
    update.mutate({ account_connector_id: source.id, revision: source.revision, datasets });
  const isReady = name.trim() !== '' && sql.trim() !== '';
  return (
    <div className="stack dataset-editor">
      <div className="fields">
        <TextInput label="Name" required value={name} onChange={(event) => setName(event.currentTarget.value)} />
      </div>
      <Textarea
        label="Query"
        description="One SELECT. It runs in a read-only transaction."
        required
        classNames={{ input: 'mono' }}
        autosize
        minRows={4}
        maxRows={24}
        spellCheck={false}
        value={sql}
        onChange={(event) => setSql(event.currentTarget.value)}
      />
      <Trial source={source} sql={sql} />
      {update.error && <Failure title="Datasets not saved" error={update.error} />}
      <div className="form-foot">
        {dataset.name !== '' && (
          <Confirm
            title={`Delete “${dataset.name}”?`}
            action="Delete dataset"
            onConfirm={() => store(others)}
            trigger={(open) => (
              <Button color="red" variant="light" disabled={!may} onClick={open}>
                Delete
              </Button>
            )}
          >
            Connections that load it pause until the change is reviewed.
          </Confirm>
        )}
        <Button variant="default" onClick={close}>
          Cancel
        </Button>
        <Button
          disabled={!may || !isReady}
          loading={update.isPending}
          onClick={() => store([...others, { name: name.trim(), sql }])}
        >
          Test and save
        </Button>
      </div>
    </div>
  );
}

/** Columns and first rows of the query as it is written. */
function Trial({ source, sql }: { source: Source; sql: string }) {
  const trial = useAction(trpc.account_connectors.tryDataset, { failed: null, refresh: [] });
  const isStale = trial.variables !== undefined && trial.variables.sql !== sql;
  return (
    <div className="stack">
      <div className="row">
        <PreviewButton
          isPending={trial.isPending}
          isReady={sql.trim() !== ''}
          onClick={() => trial.mutate({ account_connector_id: source.id, sql })}
        >
          Test query
        </PreviewButton>
        <span className="dimmed" role="status">
          {trial.data && (isStale ? 'The query has changed since this test' : describe(trial.data))}
        </span>
      </div>
      {trial.error && <Failure title="Query failed" error={trial.error} />}
      {trial.data && (
        <RowsTable
          label="First rows"
          columns={trial.data.columns.map((column) => ({
            name: column.name,
            detail: column.source_type ?? column.type,
          }))}
          rows={trial.data.rows}
        />
      )}
    </div>
  );
}

const describe = ({ rows, columns }: { rows: unknown[]; columns: unknown[] }) =>
  `First ${pluralize(rows.length, 'row')}, ${pluralize(columns.length, 'column')}`;
