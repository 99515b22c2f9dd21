import { Button } from '@mantine/core';
import { useRef, useState } from 'react';
import { Icon } from './icon.tsx';

/** Several lines of code with a copy button. */
export function CopyBlock({ label, text }: { label: string; text: string }) {
  const [copied, setCopied] = useState<string | null>(null);
  const block = useRef<HTMLPreElement>(null);
  const copy = () => {
    // The clipboard needs TLS. Without it, the text is at least selected for the keyboard shortcut.
    if (block.current) getSelection()?.selectAllChildren(block.current);
    void navigator.clipboard?.writeText(text).then(() => setCopied(text));
  };
  const isCopied = copied === text;
  return (
    <figure className="copy-block">
      <figcaption className="between">
        <span className="dimmed">{label}</span>
        <Button
          size="compact-xs"
          variant="default"
          onClick={copy}
          aria-label={`Copy: ${label}`}
          leftSection={<Icon name={isCopied ? 'check' : 'copy'} size={14} />}
        >
          {isCopied ? 'Copied' : 'Copy'}
        </Button>
      </figcaption>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it may scroll, which needs the keyboard */}
      <pre className="code-block" ref={block} tabIndex={0}>
        {text}
      </pre>
    </figure>
  );
}
