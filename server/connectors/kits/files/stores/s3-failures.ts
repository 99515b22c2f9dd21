import { XMLParser } from 'fast-xml-parser';
import {
  AuthenticationError,
  ConfigurationError,
  type ConnectorError,
  RetryableError,
} from '../../../contract/errors.ts';

const parser = new XMLParser({
  parseTagValue: false,
  htmlEntities: true,
  ignoreAttributes: true,
  isArray: (name) => LISTS.has(name),
});
const LISTS = new Set(['Contents', 'Error', 'Deleted']);

/** An answer of the store; null when it is no XML. Elements of LISTS are lists. */
export function parseXml(text: string): Record<string, unknown> | null {
  if (!text.trimStart().startsWith('<')) return null;
  try {
    return parser.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}

export interface Refusal {
  status: number;
  /** The store's own, as `NoSuchBucket`; empty when it said none. */
  code: string;
  message: string;
  bucket: string;
  /** What it was about; empty: the bucket. */
  key: string;
}

/** What the store said of a request that it did not carry out. */
export function refusalOf(status: number, text: string, place: { bucket: string; key: string }): Refusal {
  const [error] = (parseXml(text)?.Error ?? []) as { Code?: string; Message?: string }[];
  return { status, code: error?.Code ?? '', message: error?.Message ?? '', ...place };
}

type Explain = (refusal: Refusal) => ConnectorError;
const authentication =
  (code: string, message: string): Explain =>
  () =>
    new AuthenticationError(code, message);

const wrongRegion: Explain = ({ bucket }) =>
  new ConfigurationError('region_wrong', `The bucket "${bucket}" belongs to another region or endpoint`);

const EXPLAINED: Record<string, Explain> = {
  NoSuchBucket: ({ bucket }) => new ConfigurationError('bucket_not_found', `There is no bucket "${bucket}"`),
  InvalidBucketName: ({ bucket }) => new ConfigurationError('bucket_not_found', `"${bucket}" is no name of a bucket`),
  NoSuchKey: ({ key }) => new RetryableError('file_changed', `${key} is gone since it was listed`),
  PreconditionFailed: ({ key }) => new RetryableError('file_changed', `${key} was changed while it was being read`),
  NoSuchUpload: ({ key }) => new RetryableError('upload_lost', `The upload of ${key} is gone`),
  InvalidAccessKeyId: authentication('access_key_unknown', 'The store does not know the access key'),
  SignatureDoesNotMatch: authentication('secret_key_wrong', 'The secret key does not belong to the access key'),
  ExpiredToken: authentication('session_token_expired', 'The session token has expired'),
  InvalidToken: authentication('session_token_invalid', 'The store refuses the session token'),
  AccessDenied: (refusal) =>
    new ConfigurationError('access_denied', `The access key may not do this with ${placeOf(refusal)}`),
  RequestTimeTooSkewed: () => new ConfigurationError('clock_skewed', "This machine's clock is not the store's"),
  PermanentRedirect: wrongRegion,
  TemporaryRedirect: wrongRegion,
  AuthorizationHeaderMalformed: wrongRegion,
  IllegalLocationConstraintException: wrongRegion,
};

const placeOf = ({ bucket, key }: Refusal) => (key ? `"${key}" in "${bucket}"` : `the bucket "${bucket}"`);

export function s3Error(refusal: Refusal): ConnectorError {
  const { status, code, message } = refusal;
  const explain = EXPLAINED[code] ?? EXPLAINED[BARE[status] ?? ''];
  if (explain) return explain(refusal);
  const said = [code, message].filter((part) => part !== '').join(': ');
  const text = `The store answered ${status} for ${placeOf(refusal)}${said ? `: ${said}` : ''}`;
  if (status === 429 || status >= 500) return new RetryableError('server_error', text);
  if (code === '') return new ConfigurationError('endpoint_not_s3', `${text}. Is the endpoint one of S3?`);
  return new ConfigurationError('store_refused', text);
}

/** Without a code of the store, as after HEAD. */
const BARE: Record<number, string> = {
  301: 'PermanentRedirect',
  307: 'TemporaryRedirect',
  403: 'AccessDenied',
  412: 'PreconditionFailed',
};
