import { lazy, Suspense, useEffect } from 'react';
import { createStore } from '../store.ts';
import { useShortcuts } from './use-shortcuts.ts';

const CommandPalette = lazy(() => import('./command-palette.tsx'));
const KeyboardMap = lazy(() => import('./keyboard-map.tsx'));

const dialog = createStore<'palette' | 'keys' | null>(null);
const close = () => dialog.set(null);

export const openPalette = (): void => dialog.set('palette');

/** The dialogs that keys open. Its state is its own, because the page below is not to render with it. */
export function Dialogs() {
  useShortcuts(dialog.set);
  useEffect(() => close, []);
  const shown = dialog.use();
  return (
    <Suspense fallback={null}>
      {shown === 'palette' && <CommandPalette close={close} />}
      {shown === 'keys' && <KeyboardMap close={close} />}
    </Suspense>
  );
}
