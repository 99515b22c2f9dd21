import { ConfigurationError } from '../../contract/errors.ts';
import type { Clamping } from '../components/cursor-components.ts';
import type { Scope, Templates } from '../interpolation/template.ts';

const DAY = 86_400_000_000;
const SECOND = 1_000_000;
const WEEKDAYS = ['MONDAY', 'TUESDAY', 'WEDNESDAY', 'THURSDAY', 'FRIDAY', 'SATURDAY', 'SUNDAY'];

/** Moves times to the limits of whole days, weeks or months, as services that have reports by them ask for. */
export interface Clamp {
  up(micros: number): number;
  down(micros: number): number;
  /** By which the last interval ends before the limit, where the manifest has no granularity. */
  granularity: number;
}

/** As Airbyte's own: a time on the first day of a week or month is moved down to its midnight, by `up` too. */
export function clampOf(clamping: Clamping, templates: Templates, scope: Scope): Clamp {
  const target = templates.text(clamping.target, scope);
  if (target === 'DAY') return { up: (at) => Math.ceil(at / DAY) * DAY, down: midnight, granularity: SECOND };
  if (target === 'MONTH') return { up: (at) => month(at, 1), down: (at) => month(at, 0), granularity: DAY };
  const weekday = WEEKDAYS.indexOf(String(clamping.target_details?.weekday));
  if (target === 'WEEK' && weekday >= 0)
    return { up: (at) => week(at, weekday, 7), down: (at) => week(at, weekday, 0), granularity: DAY };
  throw new ConfigurationError(
    'invalid_clamping',
    'The target of clamping must be DAY, MONTH, or WEEK with a weekday in target_details',
  );
}

const midnight = (micros: number) => Math.floor(micros / DAY) * DAY;

function month(micros: number, later: 0 | 1): number {
  const date = new Date(Math.floor(micros / 1000));
  const first = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + (date.getUTCDate() === 1 ? 0 : later), 1);
  return first * 1000;
}

function week(micros: number, weekday: number, later: 0 | 7): number {
  // The epoch was a Thursday.
  const since = (((Math.floor(micros / DAY) + 3 - weekday) % 7) + 7) % 7;
  return midnight(micros) + (since === 0 ? 0 : later - since) * DAY;
}
