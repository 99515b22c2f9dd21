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
const LISTS = new Set(['Contents', 'Error', 'Deleted', 'Blob']);

/** Parses a response of the store; null if it is not XML. Elements in LISTS are always arrays. */
export function parseXml(text: string): Record<string, unknown> | null {
  if (!text.trimStart().startsWith('<')) return null;
  try {
    return parser.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}

export interface S3Refusal {
  status: number;
  /** The store's error code, such as `NoSuchBucket`; empty if the response has none. */
  code: string;
  message: string;
  bucket: string;
  /** Empty if the request was about the bucket itself. */
  key: string;
}

/** Reads the error out of a response. */
export function refusalOf(status: number, text: string, place: { bucket: string; key: string }): S3Refusal {
  const [error] = (parseXml(text)?.Error ?? []) as { Code?: string; Message?: string }[];
  return { status, code: error?.Code ?? '', message: error?.Message ?? '', ...place };
}

type Explain = (refusal: S3Refusal) => ConnectorError;
const authentication =
  (code: string, message: string): Explain =>
  () =>
    new AuthenticationError(code, message);

const wrongRegion: Explain = ({ bucket }) =>
  new ConfigurationError('region_wrong', `Bucket "${bucket}" belongs to another region or endpoint`);

const EXPLAINED: Record<string, Explain> = {
  NoSuchBucket: ({ bucket }) => new ConfigurationError('bucket_not_found', `Bucket "${bucket}" not found`),
  InvalidBucketName: ({ bucket }) =>
    new ConfigurationError('bucket_not_found', `"${bucket}" is not a valid bucket name`),
  NoSuchKey: ({ key }) => new RetryableError('file_changed', `${key} was deleted after it was listed`),
  PreconditionFailed: ({ key }) => new RetryableError('file_changed', `${key} changed while it was being read`),
  NoSuchUpload: ({ key }) => new RetryableError('upload_lost', `The upload of ${key} no longer exists`),
  InvalidAccessKeyId: authentication('access_key_unknown', 'The store does not know the access key'),
  SignatureDoesNotMatch: authentication('secret_key_wrong', 'The secret key does not match the access key'),
  ExpiredToken: authentication('session_token_expired', 'The session token has expired'),
  InvalidToken: authentication('session_token_invalid', 'The store rejected the session token'),
  AuthenticationRequired: authentication('unauthorized', 'The store rejected the credentials'),
  AccessDenied: (refusal) =>
    new ConfigurationError(
      'access_denied',
      `The credentials have no permission for this request on ${placeOf(refusal)}`,
    ),
  RequestTimeTooSkewed: () =>
    new ConfigurationError('clock_skewed', "The clock of this machine differs too much from the store's"),
  PermanentRedirect: wrongRegion,
  TemporaryRedirect: wrongRegion,
  AuthorizationHeaderMalformed: wrongRegion,
  IllegalLocationConstraintException: wrongRegion,
};

const placeOf = ({ bucket, key }: S3Refusal) => (key ? `"${key}" in "${bucket}"` : `the bucket "${bucket}"`);

export function s3Error(refusal: S3Refusal): ConnectorError {
  const { status, code, message } = refusal;
  const explain = EXPLAINED[code] ?? EXPLAINED[BARE[status] ?? ''];
  if (explain) return explain(refusal);
  const detail = [code, message].filter((part) => part !== '').join(': ');
  const text = `The store responded ${status} for ${placeOf(refusal)}${detail ? `: ${detail}` : ''}`;
  if (status === 429 || status >= 500) return new RetryableError('server_error', text);
  if (code === '')
    return new ConfigurationError('endpoint_not_s3', `${text}. Check that the endpoint is an S3 endpoint`);
  return new ConfigurationError('store_refused', text);
}

/** Code by status, for responses without a body, as to HEAD. */
const BARE: Record<number, string> = {
  301: 'PermanentRedirect',
  307: 'TemporaryRedirect',
  403: 'AccessDenied',
  412: 'PreconditionFailed',
};
