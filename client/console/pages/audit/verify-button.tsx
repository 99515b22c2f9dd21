import { Button, Modal } from '@mantine/core';
import { type RouterOutputs, trpc } from '../../api.ts';
import { CopyField } from '../../components/copy-field.tsx';
import { formatCount, pluralize } from '../../components/format.ts';
import { useAction } from '../../use-action.ts';

type Found = RouterOutputs['audit']['verify'];

/** Checks the hash chain, and shows the result with the anchor to keep. */
export function VerifyButton() {
  const verify = useAction(trpc.audit.verify, { failed: 'Audit log not verified', refresh: [] });
  return (
    <>
      <Button variant="default" loading={verify.isPending} onClick={() => verify.mutate({})}>
        Verify
      </Button>
      <Modal
        opened={verify.data !== undefined}
        onClose={() => verify.reset()}
        title={verify.data?.is_intact ? 'The audit log is intact' : 'The audit log was changed'}
      >
        {verify.data && <Result found={verify.data} />}
      </Modal>
    </>
  );
}

const Result = ({ found }: { found: Found }) => (
  <>
    <p>
      {formatCount(found.entries)} entries in {pluralize(found.seals, 'seal')}, {found.unsealed} not sealed yet.
    </p>
    <ul>
      {found.problems.map((one) => (
        <li key={`${one.seal} ${one.problem}`}>
          <code>{one.problem}</code>: seal {one.seal ?? '–'}, entries {one.first_entry}–{one.last_entry}
        </li>
      ))}
    </ul>
    {found.head && <CopyField label="Anchor" value={`${found.head.seal}:${found.head.hash}`} />}
  </>
);
