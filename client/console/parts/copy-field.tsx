import { Button, TextInput } from '@mantine/core';
import { useState } from 'react';
import { Icon } from './icon.tsx';

/** Text to be copied, shown in full. */
export function CopyField({ label, value }: { label: string; value: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => {
    // Without TLS there is no clipboard: the text is selected, for the keyboard to copy.
    document.querySelector<HTMLInputElement>('input[data-copy]')?.select();
    void navigator.clipboard?.writeText(value).then(() => setCopied(true));
  };
  return (
    <div className="copy-field">
      <TextInput
        label={label}
        value={value}
        readOnly
        data-copy
        className="mono grow"
        onFocus={(event) => event.target.select()}
      />
      <Button variant="default" onClick={copy} leftSection={<Icon name={isCopied ? 'check' : 'copy'} size={16} />}>
        {isCopied ? 'Copied' : 'Copy'}
      </Button>
    </div>
  );
}
