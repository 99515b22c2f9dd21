import { Button, Modal } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { Failure } from './failure.tsx';

interface QuestionProps {
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
}

interface QuestionDialogProps extends QuestionProps {
  isOpen?: boolean;
  /** The dialog stays open while the action runs, and if it fails. */
  running?: { isPending: boolean; error: unknown; failed: string };
  onClose: () => void;
}

/** A question before an action that cannot be undone. The caller closes it. */
export function QuestionDialog(props: QuestionDialogProps) {
  const { title, children, action, danger = true, isReady = true, isOpen = true, running, onConfirm, onClose } = props;
  return (
    <Modal opened={isOpen} onClose={onClose} title={title}>
      <div className="stack">
        <div>{children}</div>
        {running?.error != null && <Failure title={running.failed} error={running.error} />}
        <div className="form-foot">
          <Button variant="default" onClick={onClose} data-autofocus>
            Cancel
          </Button>
          <Button
            color={danger ? 'red' : undefined}
            disabled={!isReady}
            loading={running?.isPending ?? false}
            onClick={onConfirm}
          >
            {action}
          </Button>
        </div>
      </div>
    </Modal>
  );
}

interface ConfirmProps extends QuestionProps {
  /** Renders the button that opens the dialog. */
  trigger: (open: () => void) => ReactNode;
}

/** Asks for confirmation before an action that cannot be undone, and closes once it begins. */
export function Confirm({ trigger, onConfirm, ...question }: ConfirmProps) {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  const confirm = () => {
    close();
    onConfirm();
  };
  return (
    <>
      {trigger(() => setOpen(true))}
      <QuestionDialog {...question} isOpen={isOpen} onClose={close} onConfirm={confirm} />
    </>
  );
}

interface StopQuestionProps {
  /** Title of the dialog: `Stop run #3?` */
  title: string;
  action?: string;
  onConfirm: () => void;
  onClose: () => void;
}

/** The question before runs are stopped. */
export const StopQuestion = ({ title, action = 'Stop run', onConfirm, onClose }: StopQuestionProps) => (
  <QuestionDialog
    title={title}
    action={action}
    onClose={onClose}
    onConfirm={() => {
      onClose();
      onConfirm();
    }}
  >
    Rows that are committed stay in the destination. The next run of an incremental stream continues behind them; a full
    refresh starts again.
  </QuestionDialog>
);
