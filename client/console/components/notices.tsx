import { Button, Notification } from '@mantine/core';
import { type FocusEvent, useEffect, useRef, useState } from 'react';
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
  /** Reverts what the notice reports. */
  undo?: (() => void) | undefined;
}

const notices = createStore<readonly Notice[]>([]);
const SHOWN_MS = 5_000;
/** Long enough to read what was done, and to get to the button. */
const UNDO_MS = 10_000;
let count = 0;

function show(notice: Omit<Notice, 'id'>): void {
  count += 1;
  notices.set([...notices.get().slice(-3), { ...notice, id: count }]);
}

/** Announces success in the corner. With `undo`, the notice offers to revert it for as long as it is shown. */
export const notify = (title: string, { message = '', undo }: Partial<Pick<Notice, 'message' | 'undo'>> = {}): void =>
  show({ kind: 'success', title, message, stays: false, undo });

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

/** Reverts what the latest notice with "Undo" reports. @returns whether there was one */
export function undoLatest(): boolean {
  const latest = notices.get().findLast(({ undo }) => undo !== undefined);
  if (!latest?.undo) return false;
  dismiss(latest.id);
  latest.undo();
  return true;
}

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

function NoticeCard({ id, kind, title, message, stays, undo }: Notice) {
  const { isHeld, hold, giveBackFocus } = useHold();
  useEffect(() => {
    if (stays || isHeld) return undefined;
    const timer = setTimeout(() => dismiss(id), undo ? UNDO_MS : SHOWN_MS);
    return () => clearTimeout(timer);
  }, [id, stays, isHeld, undo]);
  const close = () => {
    giveBackFocus();
    dismiss(id);
  };
  return (
    <Notification
      {...hold}
      title={title}
      color={kind === 'error' ? 'red' : 'teal'}
      icon={<Icon name={kind === 'error' ? 'alert' : 'check'} />}
      onClose={close}
      closeButtonProps={{ 'aria-label': 'Dismiss notification' }}
      withBorder
    >
      {message}
      {undo && (
        <Button
          size="compact-sm"
          variant="default"
          aria-keyshortcuts="Control+Z"
          title="Ctrl Z"
          onClick={() => {
            close();
            undo();
          }}
        >
          Undo
        </Button>
      )}
    </Notification>
  );
}

/** Keeps a notice while the pointer or the focus is in it, and returns the focus to where it came from. */
function useHold() {
  const [isHovered, setHovered] = useState(false);
  const [isFocused, setFocused] = useState(false);
  const previous = useRef<EventTarget | null>(null);
  const hold = {
    onMouseEnter: () => setHovered(true),
    onMouseLeave: () => setHovered(false),
    onFocus: ({ currentTarget, relatedTarget }: FocusEvent) => {
      if (!currentTarget.contains(relatedTarget)) previous.current = relatedTarget;
      setFocused(true);
    },
    onBlur: ({ currentTarget, relatedTarget }: FocusEvent) => setFocused(currentTarget.contains(relatedTarget)),
  };
  const giveBackFocus = () => {
    if (previous.current instanceof HTMLElement) previous.current.focus();
  };
  return { isHeld: isHovered || isFocused, hold, giveBackFocus };
}
