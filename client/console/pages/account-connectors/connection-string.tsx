import { PasswordInput } from '@mantine/core';
import { useState } from 'react';
import { EXAMPLES, readConnectionString, takesConnectionString } from '../../parameter-form/connection-string.ts';
import type { ParameterFormState } from '../../parameter-form/use-parameter-form.ts';

interface ConnectionStringProps {
  connector_name: string;
  form: ParameterFormState;
}

/** Fills in the form from a pasted connection string, which is not stored. */
export function ConnectionString({ connector_name, form }: ConnectionStringProps) {
  const [text, setText] = useState('');
  const [problem, setProblem] = useState<string | null>(null);
  if (!takesConnectionString(connector_name)) return null;
  const read = (next: string) => {
    setText(next);
    if (next.trim() === '') return setProblem(null);
    const found = readConnectionString(next, connector_name, form.parameters);
    if ('problem' in found) return setProblem(found.problem);
    setProblem(null);
    for (const [name, value] of Object.entries(found.values)) form.set(name, value);
  };
  return (
    <PasswordInput
      label="Connection string"
      description="Optional. Fills in the fields below"
      placeholder={EXAMPLES[connector_name]}
      autoComplete="off"
      visibilityToggleButtonProps={{ 'aria-label': 'Show the connection string' }}
      value={text}
      error={problem}
      onChange={(event) => read(event.currentTarget.value)}
    />
  );
}
