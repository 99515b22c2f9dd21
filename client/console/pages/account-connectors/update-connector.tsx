import { Button, Checkbox, FileButton, Modal } from '@mantine/core';
import { useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { pluralize } from '../../components/format.ts';
import { usePermission } from '../../current-user.ts';
import { useAction } from '../../use-action.ts';

type Preview = RouterOutputs['custom_connectors']['preview'];

/** Updates a connector of the account to a newer manifest, once its changes were seen. */
export function UpdateConnector({ connector_name, onUpdated }: { connector_name: string; onUpdated?: () => void }) {
  const mayUpdate = usePermission('sources.update');
  const [isOpen, setOpen] = useState(false);
  if (!mayUpdate || !connector_name.startsWith('custom.')) return null;
  return (
    <>
      <Button variant="default" onClick={() => setOpen(true)}>
        Update connector
      </Button>
      {isOpen && (
        <UpdateDialog connector_name={connector_name} onUpdated={() => onUpdated?.()} onClose={() => setOpen(false)} />
      )}
    </>
  );
}

interface UpdateDialogProps {
  connector_name: string;
  onUpdated: () => void;
  onClose: () => void;
}

function UpdateDialog({ connector_name, onUpdated, onClose }: UpdateDialogProps) {
  const [file, setFile] = useState<{ name: string; text: string } | null>(null);
  const [accept_breaking, setAccepted] = useState(false);
  const given = file === null ? {} : { manifest: file.text };
  const preview = useAction(trpc.custom_connectors.preview, { failed: null, refresh: [] });
  const update = useAction(trpc.custom_connectors.update, {
    failed: null,
    done: 'Connector updated',
    after: () => {
      onClose();
      onUpdated();
    },
  });
  const take = async (one: File) => setFile({ name: one.name, text: await one.text() });
  const found = preview.data;
  return (
    <Modal opened onClose={onClose} title={`Update ${connector_name}`} size="xl">
      <div className="stack">
        {!found && (
          <>
            <p className="dimmed">
              Compares the manifest at its address, or one that you upload, with the stored one. Nothing changes before
              you confirm.
            </p>
            <div className="row">
              <FileButton accept=".yaml,.yml,.json" onChange={(one) => void (one && take(one))}>
                {(props) => (
                  <Button {...props} variant="default" size="xs">
                    Upload manifest
                  </Button>
                )}
              </FileButton>
              {file && <span className="file-name">{file.name}</span>}
            </div>
          </>
        )}
        {found && <Changes preview={found} />}
        {found && found.sources.length > 0 && (
          <Checkbox
            label="Update although sources would break"
            checked={accept_breaking}
            onChange={(event) => setAccepted(event.currentTarget.checked)}
          />
        )}
        {preview.error && <Failure title="The manifest was not compared" error={preview.error} />}
        {update.error && <Failure title="The connector was not updated" error={update.error} />}
        <div className="form-foot">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          {found ? (
            <Button
              loading={update.isPending}
              disabled={!found.is_changed || (found.sources.length > 0 && !accept_breaking)}
              onClick={() => update.mutate({ connector_name, ...given, digest: found.digest, accept_breaking })}
            >
              Update connector
            </Button>
          ) : (
            <Button loading={preview.isPending} onClick={() => preview.mutate({ connector_name, ...given })}>
              Compare
            </Button>
          )}
        </div>
      </div>
    </Modal>
  );
}

function Changes({ preview: { is_changed, changes, sources, sources_count } }: { preview: Preview }) {
  if (!is_changed) return <p>The manifest has not changed</p>;
  return (
    <>
      <p>
        {pluralize(sources_count, 'source')} {sources_count === 1 ? 'gets' : 'get'} the new manifest
      </p>
      {changes.length === 0 ? (
        <p className="dimmed">No stream, key, field or parameter changes</p>
      ) : (
        <table className="table compact stacked">
          <thead>
            <tr>
              <th>Change</th>
              <th>Stream</th>
              <th>Before</th>
              <th>After</th>
            </tr>
          </thead>
          <tbody>
            {changes.map(({ subject, stream, name, before, after, is_breaking }) => (
              <tr key={`${subject} ${stream} ${name}`}>
                <td>
                  {subject.replace('_', ' ')} {name}
                  {is_breaking && <b> breaking</b>}
                </td>
                <td data-label="Stream">{stream}</td>
                <td data-label="Before">{before ?? '–'}</td>
                <td data-label="After">{after ?? '–'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {sources.map(({ id, name, problems, needs_secrets, streams }) => (
        <p key={id} className="stream-error">
          {name} would break:{' '}
          {[
            ...problems,
            ...(needs_secrets ? ['requests go to other places, so that its secrets have to be entered again'] : []),
            ...streams.map(({ connection_name, stream }) => `${connection_name} loads ${stream}`),
          ].join('; ')}
        </p>
      ))}
    </>
  );
}
