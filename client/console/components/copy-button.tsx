import { Button } from '@mantine/core';
import { useState } from 'react';
import { Icon } from './icon.tsx';

/** Copies a text. Without TLS there is no clipboard, and no button. */
export function CopyButton({ label, text }: { label: string; text: string }) {
  const [copied, setCopied] = useState<string | null>(null);
  if (!navigator.clipboard) return null;
  return (
    <Button
      size="xs"
      variant="default"
      leftSection={<Icon name={copied === text ? 'check' : 'copy'} size={14} />}
      onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(text))}
    >
      {copied === text ? 'Copied' : label}
    </Button>
  );
}
