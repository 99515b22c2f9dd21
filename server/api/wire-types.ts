import { z } from 'zod';
import { TIME_OF_DAY } from '../pipeline/daily-times.ts';

/** A timestamp in a response: RFC 3339, UTC, milliseconds. */
export const instant = () => z.string().meta({ format: 'date-time', examples: ['2026-01-31T23:59:59.123Z'] });

/** A count in a response, a 64-bit integer. */
export const count = () => z.number().meta({ type: 'integer', format: 'int64', minimum: 0 });

/** A whole number in a response. */
export const whole = () => z.number().meta({ type: 'integer' });

/** Text in a request. reject-unstorable.ts has already rejected NUL and lone surrogates. */
export const text = (minimum: number, maximum: number) => z.string().min(minimum).max(maximum);

export const ConnectorType = z.enum(['source', 'destination']).meta({ id: 'ConnectorType' });
export type ConnectorType = z.infer<typeof ConnectorType>;

/** A name in a request, trimmed. */
export const name = () => text(1, 255).trim().min(1);

/** Who keeps an item in files, in a request. */
export const owner = () =>
  text(1, 100)
    .trim()
    .min(1)
    .nullable()
    .meta({ description: 'Who keeps the item in files. `apply --prune` deletes within one owner.' });

/** A timestamp in a request: RFC 3339 with an offset, or a date, which means midnight UTC. */
export const moment = () =>
  z
    .union([z.iso.datetime({ offset: true }), z.iso.date()])
    .refine(isInEra, OUT_OF_ERA)
    .transform((given) => new Date(given).toISOString());

/** PostgreSQL has no year 0, and an offset can lead beyond 9999. */
function isInEra(given: string): boolean {
  const milliseconds = Date.parse(given);
  return milliseconds >= FIRST_MS && milliseconds <= LAST_MS;
}
const OUT_OF_ERA = 'The year should be from 1 to 9999';
const FIRST_MS = Date.parse('0001-01-01T00:00:00Z');
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** A date. The bounds leave room for dates computed from it, which need four digits too. */
export const day = () =>
  z.iso
    .date({ abort: true })
    .refine((given) => given >= '1000-01-01' && given <= '9998-12-31', 'The year should be from 1000 to 9998');

/** An id in a request body: any UUID, in lower case as ours are. */
export const idInBody = () => z.guid().toLowerCase();

/** A local time of day in a request. */
export const timeOfDay = () => text(5, 5).regex(TIME_OF_DAY, 'A time of day is HH:MM, from 00:00 to 23:59');

/** An IANA time zone in a request. */
export const timeZone = () => text(1, 100).refine(isTimeZone, 'Not a valid IANA time zone');

function isTimeZone(value: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: value }));
  } catch {
    return false;
  }
}

/**
 * The keys of a response that its request lacks. Requests accept and ignore them, so that what was read can be written.
 * Types of requests do not show them.
 */
export function readOnlyKeys(response: z.ZodObject, request: z.ZodRawShape): NoKeys {
  const names = Object.keys(response.shape).filter((key) => !(key in request));
  return Object.fromEntries(names.map((key) => [key, ignored()])) as NoKeys;
}
// oxlint-disable-next-line typescript/no-generated-empty-object-type -- a shape without keys is meant
type NoKeys = Record<never, never>;

const ignored = () =>
  z
    .unknown()
    .transform(() => undefined)
    .optional()
    .meta({ readOnly: true, description: 'Ignored in requests.' });

/** A user, as responses refer to it. */
export const UserReference = z
  .object({ id: z.string(), name: z.string(), email: z.string() })
  .meta({ id: 'UserReference' });

/** Query parameters of a paginated list. The header `X-Total-Count` has the total. */
export const PageQuery = z.object({
  limit: z.int().min(1).max(1000).optional().meta({ description: 'Maximum number of items. Default: all.' }),
  offset: z.int().min(0).max(100_000).default(0).meta({ description: 'Number of items to skip.' }),
});
export type PageQuery = z.infer<typeof PageQuery>;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Ids in paths are opaque to clients: one that is not a UUID matches nothing (404, not 422). */
export const isId = (value: string) => UUID.test(value);
