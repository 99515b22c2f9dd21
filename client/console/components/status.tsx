const TONES: Record<string, 'good' | 'bad' | 'warn' | 'busy' | 'calm'> = {
  active: 'good',
  healthy: 'good',
  succeeded: 'good',
  passed: 'good',
  live: 'good',
  resolved: 'good',
  equal: 'good',
  running: 'busy',
  queued: 'busy',
  retrying: 'warn',
  stopping: 'warn',
  rate_limited: 'warn',
  warning: 'warn',
  partially_succeeded: 'warn',
  pending_auth: 'warn',
  needs_reauth: 'warn',
  pending_test: 'warn',
  acknowledged: 'warn',
  invited: 'warn',
  failing: 'bad',
  failed: 'bad',
  broken: 'bad',
  different: 'bad',
  locked: 'bad',
  auto_disabled: 'bad',
  open: 'bad',
  expired: 'bad',
};

export const toneOf = (status: string) => TONES[status] ?? 'calm';

/** `partially_succeeded` as `partially succeeded` */
export const wordsOf = (value: string) => value.replaceAll('_', ' ');

/** `partially_succeeded` as `Partially succeeded`, `api_key` as `API key` */
export const labelOf = (value: string) =>
  (value.charAt(0).toUpperCase() + wordsOf(value).slice(1)).replace(/\bapi\b/i, 'API');

const LABELS: Record<string, string> = { auto_disabled: 'Disabled', needs_reauth: 'Needs reauthentication' };

/** A status with its colour as a dot. */
export const Status = ({ value, label }: { value: string; label?: string }) => (
  <span className="status" data-tone={toneOf(value)}>
    {label ?? LABELS[value] ?? labelOf(value)}
  </span>
);
