import { z } from 'zod';

/** An instant in an answer: RFC 3339, UTC, milliseconds. Not checked again on the way out. */
export const instant = () => z.string().meta({ format: 'date-time', examples: ['2026-01-31T23:59:59.123Z'] });

/** A whole count in an answer, beyond 32 bits. */
export const count = () => z.number().meta({ type: 'integer', format: 'int64', minimum: 0 });

/** Text in a request. What cannot be stored (NUL, half a surrogate pair) never comes this far: lib/unstorable.ts. */
export const text = (minimum: number, maximum: number) => z.string().min(minimum).max(maximum);

export const ConnectorType = z.enum(['source', 'destination']).meta({ id: 'ConnectorType' });
export type ConnectorType = z.infer<typeof ConnectorType>;

/** A name in a request: without blanks around it. */
export const name = () => text(1, 255).trim().min(1);

/** A moment in a request: RFC 3339 with an offset, or a day for the midnight with which it begins in UTC. */
export const moment = () =>
  z
    .union([z.iso.datetime({ offset: true }), z.iso.date()])
    .refine(isInEra, OUT_OF_ERA)
    .transform((given) => new Date(given).toISOString());

/** PostgreSQL knows no year 0, and an offset can lead beyond 9999. */
function isInEra(given: string): boolean {
  const milliseconds = Date.parse(given);
  return milliseconds >= FIRST_MS && milliseconds <= LAST_MS;
}
const OUT_OF_ERA = 'The year should be from 1 to 9999';
const FIRST_MS = Date.parse('0001-01-01T00:00:00Z');
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** A day in an answer or request. The bounds leave room for what is reckoned from it: four digits tell those days too. */
export const day = () =>
  z.iso
    .date({ abort: true })
    .refine((given) => given >= '1000-01-01' && given <= '9998-12-31', 'The year should be from 1000 to 9998');

/** An id in a request body. Any UUID will do, ours are lower case. */
export const idInBody = () => z.guid().toLowerCase();

/** An IANA time zone in a request. */
export const timeZone = () => text(1, 100).refine(isTimeZone, 'This is no IANA time zone');

function isTimeZone(value: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: value }));
  } catch {
    return false;
  }
}

/** The user who did something, as answers show it. */
export const UserReference = z
  .object({ id: z.string(), name: z.string(), email: z.string() })
  .meta({ id: 'UserReference' });

/** Query parameters of a list that can be long. The whole size is in the header `X-Total-Count`. */
export const Page = z.object({
  limit: z.int().min(1).max(1000).optional().meta({ description: 'Items to answer with; absent: all of them.' }),
  offset: z.int().min(0).max(100_000).default(0).meta({ description: 'Items to leave out at the start.' }),
});
export type Page = z.infer<typeof Page>;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Path ids are opaque strings to clients; one that is no UUID names nothing (404, not 422). */
export const isId = (value: string) => UUID.test(value);
