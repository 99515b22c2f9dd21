import { Select, Switch, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import type { Action } from './trigger-draft.ts';

interface ChatFieldsProps {
  action: Extract<Action, { type: 'send_chat_message' }>;
  onChange: (action: Action) => void;
}

/** A chat destination of the account and one of its channels, listed live. */
export function ChatFields({ action, onChange }: ChatFieldsProps) {
  const { account_connector_id } = action;
  const systems = useQuery(trpc.connectors.list.queryOptions(undefined, { staleTime: Infinity }));
  const all = useQuery(trpc.account_connectors.list.queryOptions({ connector_type: 'destination' }));
  const chatConnectors = new Set(
    (systems.data ?? []).filter(({ capabilities }) => capabilities.chat).map(({ id }) => id),
  );
  const chats = (all.data ?? []).filter(({ connector_id }) => chatConnectors.has(connector_id));
  const channels = useQuery(
    trpc.automation.listChatChannels.queryOptions(
      { account_connector_id },
      { enabled: account_connector_id !== '', retry: false, staleTime: 60_000 },
    ),
  );
  if (all.data && systems.data && chats.length === 0) {
    return (
      <p className="dimmed">
        No chat is connected yet. <Link href="/console/destinations/new">Create a chat destination</Link> first.
      </p>
    );
  }
  const known = (channels.data ?? []).filter(({ is_archived }) => !is_archived);
  return (
    <div className="fields">
      <Select
        label="Chat"
        withAsterisk
        data={chats.map(({ id, name }) => ({ value: id, label: name }))}
        value={account_connector_id || null}
        onChange={(id) => onChange({ ...action, account_connector_id: id ?? '', channel_id: '' })}
      />
      {channels.error ? (
        // Without a list of channels, the ID of one can still be entered.
        <TextInput
          label="Channel ID"
          withAsterisk
          value={action.channel_id}
          onChange={(event) => onChange({ ...action, channel_id: event.currentTarget.value })}
        />
      ) : (
        <Select
          label="Channel"
          withAsterisk
          searchable
          limit={100}
          disabled={account_connector_id === ''}
          placeholder={channels.isFetching ? 'Loading channels…' : 'Select a channel'}
          data={known.map(({ id, name, is_private, is_member }) => ({
            value: id,
            label: `#${name}${is_private ? ', private' : ''}${is_member ? '' : ', bot not in channel'}`,
          }))}
          value={action.channel_id || null}
          onChange={(id) => onChange({ ...action, channel_id: id ?? '' })}
        />
      )}
      <Textarea
        className="wide"
        label="Message"
        description="{{ name }} inserts an event variable"
        autosize
        minRows={2}
        value={action.message_template}
        onChange={(event) => onChange({ ...action, message_template: event.currentTarget.value })}
      />
      <Switch
        label="One thread per case"
        checked={action.thread_by_case ?? true}
        onChange={(event) => onChange({ ...action, thread_by_case: event.currentTarget.checked })}
      />
      {channels.error && <Failure title="Channels not loaded" error={channels.error} />}
    </div>
  );
}
