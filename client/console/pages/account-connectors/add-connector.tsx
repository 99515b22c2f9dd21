import { ActionIcon, Button, FileButton, Modal, TextInput } from '@mantine/core';
import { useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { Icon } from '../../components/icon.tsx';
import { usePermission } from '../../current-user.ts';
import { problemOf } from '../../refused-field.ts';
import { useAction } from '../../use-action.ts';

type CustomConnector = RouterOutputs['custom_connectors']['create'];

/** Adds a connector from an Airbyte manifest to the catalog. */
export function AddConnector() {
  const mayCreate = usePermission('sources.create');
  const [isOpen, setOpen] = useState(false);
  if (!mayCreate) return null;
  return (
    <>
      <Button
        className="fit"
        variant="default"
        size="xs"
        leftSection={<Icon name="add" size={14} />}
        onClick={() => setOpen(true)}
      >
        Add connector
      </Button>
      {isOpen && <AddDialog onClose={() => setOpen(false)} />}
    </>
  );
}

interface GivenFile {
  name: string;
  text: string;
}

function AddDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [address, setAddress] = useState('');
  const [manifest, setManifest] = useState<GivenFile | null>(null);
  const [components, setComponents] = useState<GivenFile | null>(null);
  const [icon, setIcon] = useState<GivenFile | null>(null);
  const create = useAction(trpc.custom_connectors.create, {
    failed: null,
    done: 'Connector added',
    after: (_created: CustomConnector) => onClose(),
  });
  const problem = problemOf(create.error, 'name');
  const add = () =>
    create.mutate({
      name: name.trim(),
      ...(manifest ? { manifest: manifest.text } : { manifest_url: address.trim() }),
      ...(components && { components: components.text }),
      ...(icon && { icon: icon.text }),
    });
  return (
    <Modal opened onClose={onClose} title="Add connector" size="lg">
      <div className="stack">
        <p className="dimmed">
          The manifest of a low-code connector of Airbyte, unchanged. Everyone in the account can create sources with
          it.
        </p>
        <TextInput
          label="Name"
          description="Lower-case letters, digits and underscores"
          placeholder="shop"
          value={name}
          error={problem}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <TextInput
          label="Address of the manifest"
          placeholder={manifest ? `Uploaded: ${manifest.name}` : 'https://example.com/source-shop/manifest.yaml'}
          value={address}
          disabled={manifest !== null}
          onChange={(event) => setAddress(event.currentTarget.value)}
        />
        <Upload label="Upload manifest" accept=".yaml,.yml,.json" file={manifest} onFile={setManifest} />
        <Upload label="Upload components.py" accept=".py" file={components} onFile={setComponents} />
        <Upload
          label="Upload icon"
          accept="image/png,image/jpeg,image/webp,image/svg+xml"
          file={icon}
          onFile={setIcon}
          asUrl
        />
        {create.error && problem === null && <Failure title="The connector was not added" error={create.error} />}
        <div className="form-foot">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button
            loading={create.isPending}
            disabled={name.trim() === '' || (manifest === null && address.trim() === '')}
            onClick={add}
          >
            Add connector
          </Button>
        </div>
      </div>
    </Modal>
  );
}

interface UploadProps {
  label: string;
  accept: string;
  file: GivenFile | null;
  onFile: (file: GivenFile | null) => void;
  /** Reads a data URL instead of text. */
  asUrl?: boolean;
}

function Upload({ label, accept, file, onFile, asUrl = false }: UploadProps) {
  const take = async (given: File | null) => {
    if (!given) return;
    onFile({ name: given.name, text: asUrl ? await dataUrl(given) : await given.text() });
  };
  return (
    <div className="row">
      <FileButton accept={accept} onChange={(given) => void take(given)}>
        {(props) => (
          <Button {...props} variant="default" size="xs">
            {label}
          </Button>
        )}
      </FileButton>
      {file && (
        <>
          <span className="file-name">{file.name}</span>
          <ActionIcon variant="subtle" color="gray" aria-label={`Remove ${file.name}`} onClick={() => onFile(null)}>
            <Icon name="close" size={14} />
          </ActionIcon>
        </>
      )}
    </div>
  );
}

const dataUrl = (file: File) =>
  new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(reader.result as string));
    reader.addEventListener('error', () => reject(reader.error ?? new Error('The file cannot be read')));
    reader.readAsDataURL(file);
  });
