import { digitsOf } from '../cells/json-cells.ts';
import { parseExactly } from '../cells/json-line.ts';
import { JSON_LIMITS, tooComplexAt } from '../cells/json-limits.ts';
import type { AcceptedEvent, ReceivedRequest } from '../contract/connector.ts';
import { DataError } from '../contract/errors.ts';
import { verifySignature } from './signatures.ts';
import type { Signature, WebhookConfig } from './settings.ts';

interface Place {
  header?: string | undefined;
  path?: string | undefined;
}

/** Where senders have the id and the type of an event. */
const PLACES: Partial<Record<Signature, { id: Place; type: Place }>> = {
  github: { id: { header: 'x-github-delivery' }, type: { header: 'x-github-event' } },
  shopify: { id: { header: 'x-shopify-webhook-id' }, type: { header: 'x-shopify-topic' } },
  stripe: { id: { path: 'id' }, type: { path: 'type' } },
  standard_webhooks: { id: { header: 'webhook-id' }, type: { path: 'type' } },
};

const MAX_ID_LENGTH = 255;
const MAX_TYPE_LENGTH = 100;
/** A byte order mark is refused: JSON has none, and without it the text would differ from what was signed. */
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Verifies before it parses: the body of a stranger costs a hash. */
export function acceptEvent(config: WebhookConfig, request: ReceivedRequest): AcceptedEvent {
  verifySignature(config, request);
  const body = textOf(request.body);
  const value = parsed(body);
  const known = PLACES[config.signature];
  const { event_id_header, event_id_path, event_type_header, event_type_path } = config;
  const own = (header?: string, path?: string): Place | null =>
    (header ?? path) === undefined ? null : { header, path };
  const idPlace = own(event_id_header, event_id_path) ?? known?.id;
  const typePlace = own(event_type_header, event_type_path) ?? known?.type;
  return {
    id: idPlace ? eventId(textAt(idPlace, request.headers, value), idPlace) : null,
    type: typePlace ? eventType(textAt(typePlace, request.headers, value)) : null,
    headers: chosenHeaders(config.headers, request.headers),
    body: body.trim(),
  };
}

function textOf(bytes: Uint8Array): string {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    throw notJson('The body is not valid UTF-8');
  }
}

function parsed(text: string): unknown {
  if (tooComplexAt(text) !== null) throw notJson(`The body has more than ${JSON_LIMITS}`);
  try {
    return parseExactly(text);
  } catch {
    throw notJson('The body is not valid JSON. Let the sender use the content type application/json');
  }
}

/** An id in the wrong place would store every repetition, so its absence is refused. */
function eventId(text: string | null, { header, path }: Place): string {
  if (text !== null && text !== '' && text.length <= MAX_ID_LENGTH && !text.includes('\0')) return text;
  const place = header === undefined ? `the path ${path} of the body` : `the header ${header}`;
  const message = `The event has no id of at most ${MAX_ID_LENGTH} characters in ${place}. Check the settings of the source`;
  throw new DataError('webhook_id_missing', message);
}

/** An event without a type is in the stream of all events alone. */
const eventType = (text: string | null) =>
  text !== null && text !== '' && text.length <= MAX_TYPE_LENGTH && !/\p{Cc}/u.test(text) ? text : null;

/** All digits of a number: rounded ids of two events could be equal. */
function textAt({ header, path }: Place, headers: Headers, value: unknown): string | null {
  if (header !== undefined) return headers.get(header);
  let found = value;
  for (const name of (path ?? '').split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return null;
    found = (found as Record<string, unknown>)[name];
  }
  return typeof found === 'string' ? found : digitsOf(found);
}

const chosenHeaders = (names: readonly string[], headers: Headers) =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = headers.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );

const notJson = (message: string) => new DataError('webhook_body_invalid', message);
