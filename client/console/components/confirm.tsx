import { Button, Modal } from '@mantine/core';
import { type ReactNode, useState } from 'react';

interface ConfirmProps {
  /** Title of the dialog, a question: `Delete “Orders”?` */
  title: string;
  /** The consequences. */
  children: ReactNode;
  /** Label of the confirming button. */
  action: string;
  danger?: boolean;
  /** False while input inside the dialog is missing. */
  isReady?: boolean;
  onConfirm: () => void;
  /** Renders the button that opens the dialog. */
  trigger: (open: () => void) => ReactNode;
}

/** Asks for confirmation before an action that cannot be undone. */
export function Confirm({ title, children, action, danger = true, isReady = true, onConfirm, trigger }: ConfirmProps) {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      {trigger(() => setOpen(true))}
      <Modal opened={isOpen} onClose={close} title={title}>
        <div className="stack">
          <div>{children}</div>
          <div className="form-foot">
            <Button variant="default" onClick={close} data-autofocus>
              Cancel
            </Button>
            <Button
              color={danger ? 'red' : undefined}
              disabled={!isReady}
              onClick={() => {
                close();
                onConfirm();
              }}
            >
              {action}
            </Button>
          </div>
        </div>
      </Modal>
    </>
  );
}
