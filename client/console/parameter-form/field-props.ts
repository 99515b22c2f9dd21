import type { ReactNode } from 'react';
import type { Parameter } from './parameter-values.ts';

export interface FieldProps {
  parameter: Parameter & { multiline?: boolean };
  value: unknown;
  /** Labels by value; suggestions for a free-text field. */
  options: Record<string, string>;
  /** The service already stores a secret here. */
  isStored: boolean;
  onChange: (value: unknown) => void;
  /** Props that every input takes. */
  frame: {
    name: string;
    label: string;
    description: string | null;
    withAsterisk: boolean;
    placeholder: string | undefined;
    error: string | null;
    disabled: boolean;
    onBlur: () => void;
    rightSection?: ReactNode;
  };
}

export const isFilled = (value: unknown): boolean => value !== undefined && value !== null;

/** The text of a value in an input. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : isFilled(value) ? JSON.stringify(value, null, 2) : '';

export const listOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);
