import { Button } from '@mantine/core';
import type { ReactNode } from 'react';
import { Icon } from '../components/icon.tsx';
import { usePermission } from '../current-user.ts';

/** Reads rows of a source for a preview, for users who may see data. */
export function PreviewButton(props: {
  isPending: boolean;
  /** False while input is missing. */
  isReady?: boolean;
  onClick: () => void;
  children: ReactNode;
}) {
  const may = usePermission('data.preview');
  return (
    <Button
      size="xs"
      variant="default"
      leftSection={<Icon name="search" size={14} />}
      disabled={!may || props.isReady === false}
      title={may ? undefined : 'Requires the permission data.preview'}
      loading={props.isPending}
      onClick={props.onClick}
    >
      {props.children}
    </Button>
  );
}
