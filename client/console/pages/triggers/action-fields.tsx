import { MultiSelect, NumberInput, Select, TagsInput, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { trpc } from '../../api.ts';
import { MASK } from '../../parameter-form/parameter-values.ts';
import { ChatFields } from './chat-fields.tsx';
import type { Action } from './trigger-draft.ts';

type Of<Type extends Action['type']> = Extract<Action, { type: Type }>;
interface ActionFieldsProps<One extends Action> {
  action: One;
  onChange: (action: Action) => void;
}

/** The fields of one action. */
export function ActionFields({ action, onChange }: ActionFieldsProps<Action>) {
  switch (action.type) {
    case 'call_webhook':
      return <WebhookFields action={action} onChange={onChange} />;
    case 'send_email':
      return <EmailFields action={action} onChange={onChange} />;
    case 'send_chat_message':
      return <ChatFields action={action} onChange={onChange} />;
    case 'run_connection':
      return <RunFields action={action} onChange={onChange} />;
    case 'rerun_run':
      return (
        <NumberInput
          className="fit"
          label="Maximum retries in a row"
          min={1}
          max={10}
          value={action.max_reruns ?? 1}
          onChange={(value) => onChange({ ...action, max_reruns: Number(value) || 1 })}
        />
      );
    default:
      return <p className="dimmed">Pauses the connection of the event until it is resumed.</p>;
  }
}

const WebhookFields = ({ action, onChange }: ActionFieldsProps<Of<'call_webhook'>>) => (
  <div className="fields">
    <TextInput
      className="wide"
      label="URL"
      placeholder="https://example.org/hook"
      withAsterisk
      value={action.url}
      onChange={(event) => onChange({ ...action, url: event.currentTarget.value })}
    />
    <TagsInput
      label="Headers"
      description="Name: value. Press Enter after each header"
      value={Object.entries(action.headers ?? {}).map(([name, value]) => `${name}: ${value}`)}
      onChange={(lines) => onChange({ ...action, headers: headersOf(lines) })}
    />
    <TextInput
      label="Secret"
      description="Signs requests. Starts with whsec_ or has at least 16 characters"
      type="password"
      autoComplete="new-password"
      placeholder={action.secret === MASK ? 'Stored. Type to replace' : 'None'}
      value={action.secret === MASK ? '' : (action.secret ?? '')}
      onChange={(event) => onChange({ ...action, secret: event.currentTarget.value || null })}
    />
    <Textarea
      className="wide"
      label="Body"
      description="JSON with {{ variables }}. Leave empty to send event, trigger, case and payload"
      classNames={{ input: 'mono' }}
      autosize
      minRows={2}
      value={action.payload_template ?? ''}
      onChange={(event) => onChange({ ...action, payload_template: event.currentTarget.value || null })}
    />
  </div>
);

const headersOf = (lines: string[]) =>
  Object.fromEntries(
    lines.map((line) => {
      const [name = '', ...rest] = line.split(':');
      return [name.trim(), rest.join(':').trim()];
    }),
  );

function EmailFields({ action, onChange }: ActionFieldsProps<Of<'send_email'>>) {
  const users = useQuery(trpc.users.list.queryOptions());
  return (
    <div className="fields">
      <MultiSelect
        className="wide"
        label="To"
        description="Users in this account"
        withAsterisk
        searchable
        data={(users.data ?? []).map(({ email, full_name }) => ({ value: email, label: `${full_name} <${email}>` }))}
        value={action.recipients}
        onChange={(recipients) => onChange({ ...action, recipients })}
      />
      <TextInput
        className="wide"
        label="Subject"
        value={action.subject_template}
        onChange={(event) => onChange({ ...action, subject_template: event.currentTarget.value })}
      />
      <Textarea
        className="wide"
        label="Message"
        description="{{ name }} inserts an event variable, {{ case_url }} a link to the case"
        autosize
        minRows={3}
        value={action.body_template}
        onChange={(event) => onChange({ ...action, body_template: event.currentTarget.value })}
      />
    </div>
  );
}

function RunFields({ action, onChange }: ActionFieldsProps<Of<'run_connection'>>) {
  const connections = useQuery(trpc.connections.summaries.queryOptions({}));
  return (
    <Select
      label="Connection"
      searchable
      data={[
        { value: '', label: 'Connection of the event' },
        ...(connections.data ?? []).map(({ id, name }) => ({ value: id, label: name })),
      ]}
      value={action.connection_id ?? ''}
      onChange={(id) => onChange({ ...action, connection_id: id || null })}
    />
  );
}
