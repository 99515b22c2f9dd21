import { Button, FileButton, Modal, Textarea } from '@mantine/core';
import { useState } from 'react';
import { tooLongToDraft } from '../../../openapi-document.ts';
import { type RouterOutputs, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { isEmpty, wireValue } from '../../parameter-form/parameter-values.ts';
import type { ParameterFormState } from '../../parameter-form/use-parameter-form.ts';
import { useAction } from '../../use-action.ts';

type Draft = RouterOutputs['account_connectors']['draftDefinition'];

interface OpenApiDraftProps {
  connector_name: string;
  form: ParameterFormState;
}

/** Fills in the definition of an API from its OpenAPI document, which is not stored. */
export function OpenApiDraft({ connector_name, form }: OpenApiDraftProps) {
  const [isOpen, setOpen] = useState(false);
  if (connector_name !== 'http_api') return null;
  /** Adds the names of values that the definition uses, and keeps values that are there. */
  const name = (parameter_name: string, names: readonly string[]) => {
    const parameter = form.parameters.find((one) => one.name === parameter_name);
    if (!parameter || names.length === 0) return;
    const present = wireValue(parameter, form.values[parameter_name]) as object | null | undefined;
    const values = { ...Object.fromEntries(names.map((one) => [one, ''])), ...present };
    form.set(parameter_name, JSON.stringify(values, null, 2));
  };
  const use = (draft: Draft) => {
    form.set('definition', draft.definition);
    name('config', draft.config);
    name('secrets', draft.secrets);
    setOpen(false);
  };
  return (
    <>
      <Button
        className="fit"
        variant="default"
        size="xs"
        leftSection={<Icon name="edit" size={14} />}
        onClick={() => setOpen(true)}
      >
        Draft from an OpenAPI document
      </Button>
      {isOpen && (
        <DraftDialog replaces={!isEmpty(form.values['definition'])} onUse={use} onClose={() => setOpen(false)} />
      )}
    </>
  );
}

interface DraftDialogProps {
  /** Whether the form has a definition already. */
  replaces: boolean;
  onUse: (draft: Draft) => void;
  onClose: () => void;
}

function DraftDialog({ replaces, onUse, onClose }: DraftDialogProps) {
  const [openapi, setText] = useState('');
  const [file_name, setFileName] = useState<string | null>(null);
  const draft = useAction(trpc.account_connectors.draftDefinition, { failed: null, refresh: [] });
  const problem = tooLongToDraft(openapi.length);
  const take = (text: string, from: string | null) => {
    draft.reset();
    setText(text);
    setFileName(from);
  };
  return (
    <Modal opened onClose={onClose} title="Draft from an OpenAPI document" size="xl">
      {draft.data ? (
        <Guesses draft={draft.data} replaces={replaces} onUse={onUse} onBack={() => draft.reset()} />
      ) : (
        <div className="stack">
          <p className="dimmed">
            OpenAPI 3 or Swagger 2, in YAML or JSON. Each GET operation that returns a list becomes a stream. The
            document is not stored.
          </p>
          <div className="row">
            <FileButton
              accept=".json,.yaml,.yml,application/json"
              onChange={(file) => void file?.text().then((text) => take(text, file.name))}
            >
              {(props) => (
                <Button {...props} variant="default">
                  Upload document
                </Button>
              )}
            </FileButton>
            {file_name !== null && <span className="file-name">{file_name}</span>}
          </div>
          <Textarea
            label="OpenAPI document"
            placeholder={file_name === null ? 'Or paste it here' : 'Uploaded. Paste here to replace it'}
            classNames={{ input: 'mono' }}
            rows={10}
            spellCheck={false}
            value={file_name === null ? openapi : ''}
            error={problem}
            onChange={(event) => take(event.currentTarget.value, null)}
          />
          {draft.error && <Failure title="No definition was drafted" error={draft.error} />}
          <div className="form-foot">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button
              loading={draft.isPending}
              disabled={openapi.trim() === '' || problem !== null}
              onClick={() => draft.mutate({ openapi })}
            >
              Draft definition
            </Button>
          </div>
        </div>
      )}
    </Modal>
  );
}

interface GuessesProps {
  draft: Draft;
  replaces: boolean;
  onUse: (draft: Draft) => void;
  onBack: () => void;
}

/** What was guessed, to be read before the draft is used. */
function Guesses({ draft, replaces, onUse, onBack }: GuessesProps) {
  const values = [...draft.config, ...draft.secrets];
  return (
    <div className="stack">
      <p>
        {pluralize(draft.streams.length, 'stream')}. The document does not say everything, so confirm what was guessed.
        The definition has it as comments.
      </p>
      <ul className="guesses">
        {draft.assumptions.map((one) => (
          <li key={one}>{one}</li>
        ))}
        {draft.streams.map(({ name, path, assumptions }) => (
          <li key={name}>
            <b>{name}</b> <code>{path}</code>
            <span className="dimmed">{assumptions.join(' · ')}</span>
          </li>
        ))}
      </ul>
      {draft.left_out.length > 0 && (
        <details className="fold">
          <summary>{pluralize(draft.left_out.length, 'operation')} without a stream</summary>
          <ul className="guesses">
            {draft.left_out.map(({ path, reason }) => (
              <li key={path}>
                <code>{path}</code>
                <span className="dimmed">{reason}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
      {values.length > 0 && (
        <p>
          Values to enter in the form: <code>{values.join(', ')}</code>
        </p>
      )}
      {replaces && <p className="stream-error">Replaces the definition in the form</p>}
      <div className="form-foot">
        <Button variant="default" onClick={onBack}>
          Back
        </Button>
        <Button onClick={() => onUse(draft)}>Use this draft</Button>
      </div>
    </div>
  );
}
