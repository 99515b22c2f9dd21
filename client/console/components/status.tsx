/** A state as a word in its colour; the dot is for eyes, the word for all. */
const TONES: Record<string, 'good' | 'bad' | 'warn' | 'busy' | 'calm'> = {
  active: 'good',
  healthy: 'good',
  succeeded: 'good',
  passed: 'good',
  live: 'good',
  resolved: 'good',
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
  locked: 'bad',
  auto_disabled: 'bad',
  open: 'bad',
  expired: 'bad',
};

export const toneOf = (status: string) => TONES[status] ?? 'calm';

export const wordsOf = (status: string) => status.replaceAll('_', ' ');

export const Status = ({ value, label }: { value: string; label?: string }) => (
  <span className="status" data-tone={toneOf(value)}>
    {label ?? wordsOf(value)}
  </span>
);
