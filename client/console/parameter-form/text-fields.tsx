import { NumberInput, PasswordInput, Textarea, TextInput } from '@mantine/core';
import { type FieldProps, textOf } from './field-props.ts';
import { MASK } from './parameter-values.ts';

/** The catalog does not mark multi-line texts. */
const MULTILINE = /definition|manifest|_ca$|sql|private_key/;

const isMultiline = (parameter: FieldProps['parameter']) =>
  parameter.type === 'object' || parameter.multiline === true || MULTILINE.test(parameter.name);

type Typed = { currentTarget: { value: string } };

export function TextField({ parameter, value, frame, onChange }: FieldProps) {
  const typed = { value: textOf(value), onChange: (event: Typed) => onChange(event.currentTarget.value) };
  if (isMultiline(parameter)) {
    return (
      <Textarea
        {...frame}
        {...typed}
        className="wide"
        classNames={{ input: 'mono' }}
        autosize
        minRows={3}
        maxRows={18}
        spellCheck={false}
      />
    );
  }
  return <TextInput {...frame} {...typed} type={parameter.type === 'date' ? 'date' : 'text'} spellCheck={false} />;
}

export function NumberField({ parameter, value, frame, onChange }: FieldProps) {
  const { minimum, maximum, type } = parameter;
  return (
    <NumberInput
      {...frame}
      {...(minimum !== null && { min: minimum })}
      {...(maximum !== null && { max: maximum })}
      value={typeof value === 'number' || typeof value === 'string' ? value : ''}
      onChange={onChange}
      // A number out of range gets an error, instead of changing while it is typed.
      clampBehavior="none"
      allowDecimal={type === 'number'}
      hideControls
    />
  );
}

/** A stored secret is never shown. Typing replaces it; clearing the field keeps the stored one. */
export function SecretField({ parameter, value, isStored, frame, onChange }: FieldProps) {
  const untouched = isStored ? MASK : '';
  const shared = {
    ...frame,
    placeholder: isStored ? 'Stored. Type to replace' : frame.placeholder,
    value: value === MASK ? '' : textOf(value),
    autoComplete: 'new-password',
    spellCheck: false,
    onChange: (event: Typed) => onChange(event.currentTarget.value === '' ? untouched : event.currentTarget.value),
  };
  if (parameter.type === 'object' || parameter.multiline === true)
    return <Textarea {...shared} className="wide" classNames={{ input: 'mono' }} autosize minRows={3} />;
  const { rightSection: _eye, ...masked } = shared;
  return <PasswordInput {...masked} />;
}
