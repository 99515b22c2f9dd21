import { Autocomplete, MultiSelect, Select, Switch, TagsInput } from '@mantine/core';
import { type FieldProps, isFilled, listOf, textOf } from './field-props.ts';
import { NumberField, SecretField, TextField } from './text-fields.tsx';

/** The input for a parameter's type. */
export function ParameterInput(props: FieldProps) {
  const { parameter, value, options, frame, onChange } = props;
  const { type, secret } = parameter;
  const fallback = parameter.default;
  const data = Object.entries(options).map(([one, label]) => ({ value: one, label }));
  const texts = data.map((one) => one.value);
  if (secret) return <SecretField {...props} />;
  switch (type) {
    case 'boolean': {
      const { label, description, error, disabled, name } = frame;
      const isOn = typeof value === 'boolean' ? value : fallback === true;
      return (
        <Switch
          {...{ label, description, error, disabled, name }}
          checked={isOn}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
      );
    }
    case 'enum': {
      const current = isFilled(value) ? value : fallback;
      return <Select {...frame} data={data} value={isFilled(current) ? textOf(current) : null} onChange={onChange} />;
    }
    case 'multi_enum':
      return <MultiSelect {...frame} data={data} value={listOf(value)} onChange={onChange} />;
    case 'string_list':
      return <TagsInput {...frame} data={texts} value={listOf(value)} onChange={onChange} />;
    case 'integer':
    case 'number':
      return <NumberField {...props} />;
    default:
      if (data.length === 0) return <TextField {...props} />;
      return <Autocomplete {...frame} data={texts} value={textOf(value)} onChange={onChange} limit={100} />;
  }
}
