import { Alert, Button, TextInput } from '@mantine/core';
import { type ReactNode, useRef, useState } from 'react';
import { Icon } from './icon.tsx';

/** Read-only text with a copy button. */
export function CopyField({ label, description, value }: { label: string; description?: ReactNode; value: string }) {
  const [isCopied, setCopied] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const copy = () => {
    // The clipboard needs TLS. Without it, the text is at least selected for the keyboard shortcut.
    input.current?.select();
    void navigator.clipboard?.writeText(value).then(() => setCopied(true));
  };
  return (
    <div className="copy-field">
      <TextInput
        ref={input}
        label={label}
        description={description}
        // The button beside the input stands at the lower edge of the field.
        inputWrapperOrder={['label', 'description', 'input', 'error']}
        value={value}
        readOnly
        className="grow"
        classNames={{ input: 'mono' }}
        onFocus={(event) => event.target.select()}
      />
      <Button variant="default" onClick={copy} leftSection={<Icon name={isCopied ? 'check' : 'copy'} size={16} />}>
        {isCopied ? 'Copied' : 'Copy'}
      </Button>
    </div>
  );
}

interface KeyShownOnceProps {
  label?: string;
  value: string;
  /** How long the key is valid, as a part of the sentence. */
  validity?: string;
}

/** A new API key, which the service does not show again. */
export const KeyShownOnce = ({ label = 'API key', value, validity = '' }: KeyShownOnceProps) => (
  <>
    <Alert color="yellow" icon={<Icon name="alert" />} title="Save this key now">
      It is shown only once{validity}.
    </Alert>
    <CopyField label={label} value={value} />
  </>
);
