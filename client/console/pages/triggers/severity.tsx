import { labelOf } from '../../components/status.tsx';

/** A severity with its colour. */
export const Severity = ({ value }: { value: string }) => (
  <span className="severity" data-level={value}>
    {labelOf(value)}
  </span>
);
