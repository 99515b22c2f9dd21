import { Button, Menu } from '@mantine/core';
import { Icon, type IconName } from '../../components/icon.tsx';
import { Section } from '../../components/page.tsx';
import { ActionFields } from './action-fields.tsx';
import { isNotifying, TestMessage } from './test-message.tsx';
import type { Action } from './trigger-draft.ts';

export const ACTIONS: Record<Action['type'], { label: string; icon: IconName; create: () => Action }> = {
  call_webhook: {
    label: 'Call a webhook',
    icon: 'arrow',
    create: () => ({ type: 'call_webhook', url: '', headers: {}, secret: null, payload_template: null }),
  },
  send_email: {
    label: 'Send an email',
    icon: 'logs',
    create: () => ({
      type: 'send_email',
      recipients: [],
      subject_template: '{{ trigger_name }}: {{ connection_name }}',
      body_template: '{{ error_message }}\n\n{{ case_url }}',
    }),
  },
  send_chat_message: {
    label: 'Send a chat message',
    icon: 'users',
    create: () => ({
      type: 'send_chat_message',
      account_connector_id: '',
      channel_id: '',
      message_template: '*{{ trigger_name }}*: {{ connection_name }} {{ error_message }}\n{{ case_url }}',
      thread_by_case: true,
    }),
  },
  pause_connection: { label: 'Pause the connection', icon: 'pause', create: () => ({ type: 'pause_connection' }) },
  run_connection: {
    label: 'Run a connection',
    icon: 'play',
    create: () => ({ type: 'run_connection', connection_id: null }),
  },
  rerun_run: { label: 'Retry the failed run', icon: 'refresh', create: () => ({ type: 'rerun_run', max_reruns: 1 }) },
};

interface ActionsEditorProps {
  /** The trigger, once it is stored: masked secrets are its own. */
  trigger_id?: string;
  actions: Action[];
  /** The field that the service rejected, such as `actions.0.url`. */
  refused: string;
  message: string;
  onChange: (actions: Action[]) => void;
}

/** The actions of a trigger, in order. */
export function ActionsEditor({ trigger_id, actions, refused, message, onChange }: ActionsEditorProps) {
  const add = (
    <Menu shadow="md" position="bottom-start">
      <Menu.Target>
        <Button size="xs" variant="light" leftSection={<Icon name="add" size={14} />}>
          Add action
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {Object.values(ACTIONS).map(({ label, icon, create }) => (
          <Menu.Item
            key={label}
            leftSection={<Icon name={icon} size={16} />}
            onClick={() => onChange([...actions, create()])}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
  return (
    <Section title="Actions" lead={actions.length === 0 ? 'Add at least one action' : undefined} actions={add}>
      <ol className="actions">
        {actions.map((action, index) => (
          // Actions have no identity but their position.
          // oxlint-disable-next-line react/no-array-index-key
          <li key={`${index}-${action.type}`} data-refused={refused.startsWith(`actions.${index}`) || undefined}>
            <div className="between">
              <h3 className="row">
                <Icon name={ACTIONS[action.type].icon} size={16} />
                {ACTIONS[action.type].label}
              </h3>
              <Button
                size="compact-xs"
                variant="subtle"
                color="gray"
                aria-label={`Remove action: ${ACTIONS[action.type].label}`}
                onClick={() => onChange(actions.filter((_, at) => at !== index))}
              >
                Remove
              </Button>
            </div>
            {refused.startsWith(`actions.${index}`) && <p className="stream-error">{message}</p>}
            <ActionFields
              action={action}
              onChange={(changed) => onChange(actions.map((one, at) => (at === index ? changed : one)))}
            />
            {isNotifying(action) && <TestMessage action={action} trigger_id={trigger_id} />}
          </li>
        ))}
      </ol>
    </Section>
  );
}
