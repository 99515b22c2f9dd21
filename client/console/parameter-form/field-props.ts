import type { ReactNode } from 'react';
import type { Parameter } from './parameter-values.ts';

export interface FieldProps {
  parameter: Parameter;
  value: unknown;
  /** Value to label; of a free text they are proposals. */
  options: Record<string, string>;
  /** A secret is kept by the service already. */
  isStored: boolean;
  onChange: (value: unknown) => void;
  /** What every kind of input takes. */
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

/** As it stands in a field. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : isFilled(value) ? JSON.stringify(value, null, 2) : '';

export const listOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);
