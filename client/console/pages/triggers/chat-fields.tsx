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

/** A chat of the account, and one of its channels, which are asked for live. */
export function ChatFields({ action, onChange }: ChatFieldsProps) {
  const { account_connector_id } = action;
  const systems = useQuery(trpc.connectors.list.queryOptions(undefined, { staleTime: Infinity }));
  const all = useQuery(trpc.account_connectors.list.queryOptions({ connector_type: 'destination' }));
  const talking = new Set((systems.data ?? []).filter(({ capabilities }) => capabilities.chat).map(({ id }) => id));
  const chats = (all.data ?? []).filter(({ connector_id }) => talking.has(connector_id));
  const channels = useQuery(
    trpc.automation.listChatChannels.queryOptions(
      { account_connector_id },
      { enabled: account_connector_id !== '', retry: false, staleTime: 60_000 },
    ),
  );
  if (all.data && systems.data && chats.length === 0) {
    return (
      <p className="dimmed">
        The account has no chat yet. <Link href="/console/destinations/new">Make a destination of one</Link> first.
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
        // The chat does not answer: the id of a channel can be typed all the same.
        <TextInput
          label="Channel, by its id"
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
          placeholder={channels.isFetching ? 'Asking the chat' : 'Choose'}
          data={known.map(({ id, name, is_private, is_member }) => ({
            value: id,
            label: `#${name}${is_private ? ', private' : ''}${is_member ? '' : ', the bot is not in it'}`,
          }))}
          value={action.channel_id || null}
          onChange={(id) => onChange({ ...action, channel_id: id ?? '' })}
        />
      )}
      <Textarea
        className="wide"
        label="Message"
        description="{{ name }} stands for a variable of the event"
        autosize
        minRows={2}
        value={action.message_template}
        onChange={(event) => onChange({ ...action, message_template: event.currentTarget.value })}
      />
      <Switch
        label="One thread for a case"
        checked={action.thread_by_case ?? true}
        onChange={(event) => onChange({ ...action, thread_by_case: event.currentTarget.checked })}
      />
      {channels.error && <Failure title="The channels cannot be asked for" error={channels.error} />}
    </div>
  );
}
