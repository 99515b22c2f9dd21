import { Button } from '@mantine/core';
import { CopyField } from '../../components/copy-field.tsx';

/** `link` is a path on this service. */
export const InviteLink = ({ link, onClose }: { link: string; onClose: () => void }) => (
  <div className="stack">
    <p>Share this link with the user. It is shown only once, works once and expires in 7 days.</p>
    <CopyField label="Invitation link" value={new URL(link, window.location.origin).href} />
    <div className="form-foot">
      <Button onClick={onClose}>Done</Button>
    </div>
  </div>
);
