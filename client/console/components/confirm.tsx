import { Button, Modal } from '@mantine/core';
import { type ReactNode, useState } from 'react';

interface ConfirmProps {
  /** Of the dialog, a question: `Delete the connection?` */
  title: string;
  /** What will be lost. */
  children: ReactNode;
  /** On the button that does it. */
  action: string;
  danger?: boolean;
  onConfirm: () => void;
  /** What opens the dialog. */
  trigger: (open: () => void) => ReactNode;
}

/** Asks before something that cannot be undone. */
export function Confirm({ title, children, action, danger = true, onConfirm, trigger }: ConfirmProps) {
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
