import { FileButton, Button } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useMe } from '../../current-user.ts';
import { Avatar } from '../../components/avatar.tsx';
import { notify } from '../../components/notices.tsx';
import { Failure } from '../../components/failure.tsx';
import { CONSOLE_HEADERS, ServiceError } from '../../session.ts';

const MOST_BYTES = 2 * 1024 * 1024;

/** A picture of PNG, JPEG or WebP; the service makes a square of it. */
export function AvatarUpload() {
  const me = useMe();
  const queries = useQueryClient();
  const uploading = useMutation({
    mutationFn: upload,
    onSuccess: async () => {
      notify('Your picture was replaced');
      await queries.invalidateQueries();
    },
  });
  return (
    <div className="stack">
      <div className="row">
        <Avatar name={me.full_name} url={me.avatar_url} size="lg" />
        <FileButton accept="image/png,image/jpeg,image/webp" onChange={(file) => file && uploading.mutate(file)}>
          {(props) => (
            <Button {...props} variant="default" loading={uploading.isPending}>
              Choose a picture
            </Button>
          )}
        </FileButton>
      </div>
      <p className="dimmed">PNG, JPEG or WebP, 2 MiB at the most.</p>
      {uploading.error && <Failure title="The picture was not taken" error={uploading.error} />}
    </div>
  );
}

/** @throws ServiceError */
async function upload(file: File): Promise<void> {
  if (file.size > MOST_BYTES) throw new ServiceError('The picture has more than 2 MiB', 'image_too_large', null);
  const body = new FormData();
  body.set('file', file);
  const answer = await fetch('/users/me/avatar', { method: 'POST', headers: CONSOLE_HEADERS, body });
  if (!answer.ok) throw await ServiceError.of(answer);
}
