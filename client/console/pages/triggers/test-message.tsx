import { Button } from '@mantine/core';
import { type RouterInputs, type RouterOutputs, trpc } from '../../api.ts';
import { notify, notifyFailure } from '../../components/notices.tsx';
import { usePermission } from '../../current-user.ts';
import { useAction } from '../../use-action.ts';
import type { Action } from './trigger-draft.ts';

type Tested = RouterInputs['automation']['setUpNotifications']['action'];
const NOTIFYING: Action['type'][] = ['send_email', 'send_chat_message', 'call_webhook'];

export const isNotifying = (action: Action): boolean => NOTIFYING.includes(action.type);

/** Sends a message with the settings as they are in the form. */
export function TestMessage({ action, trigger_id }: { action: Action; trigger_id?: string }) {
  const may = usePermission('triggers.update');
  const test = useAction(trpc.automation.testNotifications, {
    failed: 'Test message not sent',
    refresh: [],
    after: showResult,
  });
  return (
    <Button
      variant="default"
      size="xs"
      className="fit"
      disabled={!may}
      loading={test.isPending}
      onClick={() => test.mutate({ action: action as Tested, trigger_id })}
    >
      Send test message
    </Button>
  );
}

function showResult([tested]: RouterOutputs['automation']['testNotifications']): void {
  if (tested?.is_sent) notify('Test message sent', { message: tested.error?.message });
  else if (tested?.error) notifyFailure('Test message not sent', tested.error);
}
