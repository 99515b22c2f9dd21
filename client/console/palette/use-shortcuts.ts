import { useEffect, useRef } from 'react';
import { useLocation } from 'wouter';
import { undoLatest } from '../components/notices.tsx';
import { NAVIGATION } from '../navigation.ts';

const FIRST_LETTERS: Record<string, string> = {
  o: 'Overview',
  c: 'Connections',
  s: 'Sources',
  d: 'Destinations',
  t: 'Triggers',
  a: 'Cases',
  e: 'Events',
  u: 'Usage',
};
const PAGES = NAVIGATION.flatMap(({ items }) => items);

/** Pages by the key that follows G. */
export const GO_TO = Object.fromEntries(
  Object.entries(FIRST_LETTERS).flatMap(([key, label]) => {
    const page = PAGES.find((one) => one.label === label);
    return page ? [[key, page]] : [];
  }),
);

const SEQUENCE_MS = 1_000;

/** Keys that work on every page, except where text is typed. */
export function useShortcuts(open: (what: 'palette' | 'keys') => void): void {
  const [, navigate] = useLocation();
  const lastG = useRef(0);
  const handle = useRef<(event: KeyboardEvent) => void>(() => {});
  handle.current = (event) => {
    const key = event.key.toLowerCase();
    if ((event.ctrlKey || event.metaKey) && key === 'k') {
      event.preventDefault();
      open('palette');
      return;
    }
    if (isTyping(event.target)) return;
    if ((event.ctrlKey || event.metaKey) && !event.shiftKey && key === 'z') {
      if (undoLatest()) event.preventDefault();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const follows = event.timeStamp - lastG.current < SEQUENCE_MS;
    lastG.current = key === 'g' ? event.timeStamp : 0;
    if (follows && GO_TO[key]) navigate(GO_TO[key].href);
    else if (key === '?') open('keys');
    else if (key === 'c' && !follows) navigate('/console/connections/new');
    else if (key === '/') {
      event.preventDefault();
      document.querySelector<HTMLInputElement>('#main input[type=search]')?.focus();
    }
  };
  useEffect(() => {
    const listener = (event: KeyboardEvent) => handle.current(event);
    window.addEventListener('keydown', listener);
    return () => window.removeEventListener('keydown', listener);
  }, []);
}

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName) ||
    target.closest('[role=dialog]') !== null);
