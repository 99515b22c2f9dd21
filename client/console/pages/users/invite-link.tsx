import { Button } from '@mantine/core';
import { CopyField } from '../../components/copy-field.tsx';

/** `link` is a path of this very service. */
export const InviteLink = ({ link, onClose }: { link: string; onClose: () => void }) => (
  <div className="stack">
    <p>Pass this link on. It is shown only now, works once, and ends after 7 days.</p>
    <CopyField label="Invitation" value={new URL(link, window.location.origin).href} />
    <div className="form-foot">
      <Button onClick={onClose}>Done</Button>
    </div>
  </div>
);
