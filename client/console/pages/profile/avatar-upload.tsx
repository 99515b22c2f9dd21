import { Button, FileButton } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { BASE_PATH } from '../../base-path.ts';
import { useCurrentUser } from '../../current-user.ts';
import { Avatar } from '../../components/avatar.tsx';
import { notify } from '../../components/notices.tsx';
import { Failure } from '../../components/failure.tsx';
import { CONSOLE_HEADERS, ServiceError } from '../../session.ts';

const MAX_BYTES = 2 * 1024 * 1024;

/** Uploads a picture, which the service crops to a square. */
export function AvatarUpload() {
  const me = useCurrentUser();
  const queries = useQueryClient();
  const uploading = useMutation({
    mutationFn: upload,
    onSuccess: async () => {
      notify('Picture updated');
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
              Upload picture
            </Button>
          )}
        </FileButton>
      </div>
      <p className="dimmed">PNG, JPEG or WebP, up to 2 MiB</p>
      {uploading.error && <Failure title="Upload failed" error={uploading.error} />}
    </div>
  );
}

/** @throws ServiceError */
async function upload(file: File): Promise<void> {
  if (file.size > MAX_BYTES) throw new ServiceError('The picture is larger than 2 MiB', 'image_too_large', null);
  const body = new FormData();
  body.set('file', file);
  const response = await fetch(`${BASE_PATH}/users/me/avatar`, { method: 'POST', headers: CONSOLE_HEADERS, body });
  if (!response.ok) throw await ServiceError.from(response);
}
