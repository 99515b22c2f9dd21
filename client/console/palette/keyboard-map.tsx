import { Modal } from '@mantine/core';
import { GO_TO } from './use-shortcuts.ts';

const KEYS: [keys: string[], what: string][] = [
  [['Ctrl', 'K'], 'Search and actions'],
  [['/'], 'Focus the search of the page'],
  [['C'], 'New connection'],
  ...Object.entries(GO_TO).map(([key, { label }]): [string[], string] => [['G', key.toUpperCase()], `Go to ${label}`]),
  [['Ctrl', 'Z'], 'Undo, while a notification offers it'],
  [['?'], 'This list'],
];

/** All keyboard shortcuts. */
export default function KeyboardMap({ close }: { close: () => void }) {
  return (
    <Modal opened onClose={close} title="Keyboard shortcuts">
      <dl className="keyboard-map">
        {KEYS.map(([keys, what]) => (
          <div key={what}>
            <dt>{what}</dt>
            <dd>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </Modal>
  );
}
