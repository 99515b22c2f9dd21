import { Notification } from '@mantine/core';
import { useEffect } from 'react';
import { createStore } from '../store.ts';
import { describe } from './failure.tsx';
import { Icon } from './icon.tsx';

interface Notice {
  id: number;
  kind: 'success' | 'error';
  title: string;
  message: string;
  /** Stays until it is closed; other notices disappear by themselves. */
  stays: boolean;
}

const notices = createStore<readonly Notice[]>([]);
const SHOWN_MS = 5_000;
let count = 0;

function show(notice: Omit<Notice, 'id'>): void {
  count += 1;
  notices.set([...notices.get().slice(-3), { ...notice, id: count }]);
}

/** Announces success in the corner. */
export const notify = (title: string, message = ''): void => show({ kind: 'success', title, message, stays: false });

/** Announces a failure that the page shows as well, so the notice disappears by itself. */
export const notifyProblem = (title: string, message: string): void =>
  show({ kind: 'error', title, message, stays: false });

/** Announces a failure in the corner; the notice stays until it is closed. */
export function notifyFailure(title: string, error: unknown): void {
  const { message, code, request_id } = describe(error);
  const codes = [code, request_id && `request ${request_id}`].filter(Boolean).join(', ');
  show({ kind: 'error', title, message: codes === '' ? message : `${message} (${codes})`, stays: true });
}

const dismiss = (id: number) => notices.set(notices.get().filter((one) => one.id !== id));

export function Notices() {
  const shown = notices.use();
  return (
    <div className="notices" role="region" aria-label="Notifications" aria-live="polite">
      {shown.map((notice) => (
        <NoticeCard key={notice.id} {...notice} />
      ))}
    </div>
  );
}

function NoticeCard({ id, kind, title, message, stays }: Notice) {
  useEffect(() => {
    if (stays) return undefined;
    const timer = setTimeout(() => dismiss(id), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [id, stays]);
  return (
    <Notification
      title={title}
      color={kind === 'error' ? 'red' : 'teal'}
      icon={<Icon name={kind === 'error' ? 'alert' : 'check'} />}
      onClose={() => dismiss(id)}
      closeButtonProps={{ 'aria-label': 'Dismiss notification' }}
      withBorder
    >
      {message}
    </Notification>
  );
}
