import type { RequestRecord, ResponseRecord } from '../../connectors/contract/connector.ts';
import type { Redactor } from '../../platform/redaction/redact.ts';

/** Characters of a body that a log shows. */
const MAX_LENGTH = 64 * 1024;
/** The last characters of an incomplete body are left out: half a secret is not recognized. */
const MARGIN = 8 * 1024;
/** Bytes of a response that are recorded. */
export const MAX_RECORDED_BYTES = MAX_LENGTH + MARGIN;

/** A body as logs show it. Redacted before it is cut. */
export function loggedBody(
  { body = null, is_incomplete = false }: Pick<RequestRecord & ResponseRecord, 'body' | 'is_incomplete'>,
  redactor: Redactor,
): { body: string | null; body_truncated: boolean } {
  if (body === null) return { body, body_truncated: false };
  const text = redactor.text(body);
  const end = Math.min(MAX_LENGTH, is_incomplete ? Math.max(0, text.length - MARGIN) : text.length);
  return { body: text.slice(0, end), body_truncated: is_incomplete || end < text.length };
}
