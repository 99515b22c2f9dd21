import { z } from 'zod';
import { azureSettings } from './azure.ts';
import { ftpSettings } from './ftp.ts';
import { gcsSettings } from './gcs.ts';
import { serverSettings, sftpSettings } from './sftp.ts';
import { shownAt, text } from './shown-at.ts';

const LABELS = {
  local: 'Files folder of this service',
  http: 'HTTP(S)',
  s3: 'S3',
  sftp: 'SFTP',
  ftp: 'FTP and FTPS',
  azure: 'Azure Blob Storage',
  gcs: 'Google Cloud Storage',
};

export const sourceLocation = z
  .enum(['local', 'http', 's3', 'sftp', 'ftp', 'azure', 'gcs'])
  .default('local')
  .meta({ label: 'Location', directs_secrets: false, value_labels: LABELS });
export const destinationLocation = z
  .enum(['local', 's3', 'sftp', 'azure', 'gcs'])
  .default('local')
  .meta({
    label: 'Location',
    directs_secrets: false,
    value_labels: { local: LABELS.local, s3: LABELS.s3, sftp: LABELS.sftp, azure: LABELS.azure, gcs: LABELS.gcs },
  });

const timeout_seconds = z
  .number()
  .min(0.1)
  .max(600)
  .default(60)
  .meta({
    label: 'Timeout (seconds)',
    directs_secrets: false,
    description: 'Longest wait for a response to start, and between two parts of it',
    group: 'advanced',
    ...shownAt('http', 's3', 'sftp', 'ftp', 'azure', 'gcs'),
  });

/** Of every location whose users have passwords. */
const loginSettings = {
  username: z
    .string()
    .max(1000)
    .default('')
    .meta({ label: 'Username', directs_secrets: false, group: 'authentication', ...shownAt('http', 'sftp', 'ftp') }),
  password: text()
    .optional()
    .meta({ label: 'Password', secret: true, group: 'authentication', ...shownAt('http', 'sftp', 'ftp') }),
};

const httpSettings = {
  urls: z
    .array(z.url({ protocol: /^https?$/ }).max(2000))
    .max(1000)
    .default([])
    .meta({
      label: 'Addresses',
      directs_secrets: true,
      keyed_address: true,
      description: 'All addresses together form one stream',
      validates_remotely: true,
      ...shownAt('http'),
    }),
  authentication: z
    .enum(['none', 'bearer', 'basic'])
    .default('none')
    .meta({
      label: 'Authentication',
      directs_secrets: false,
      group: 'authentication',
      value_labels: { none: 'None', bearer: 'Bearer token', basic: 'Username and password' },
      ...shownAt('http'),
    }),
  token: text(10_000)
    .optional()
    .meta({ label: 'Bearer token', secret: true, group: 'authentication', ...shownAt('http') }),
  ...loginSettings,
  headers: z
    .record(z.string(), z.string())
    .optional()
    .meta({
      label: 'Headers',
      description: 'Sent with every request',
      secret: true,
      group: 'advanced',
      ...shownAt('http'),
    }),
};

export const s3Settings = {
  bucket: text(255)
    .optional()
    .meta({
      label: 'Bucket',
      directs_secrets: true,
      description: 'In Azure, the container',
      validates_remotely: true,
      ...shownAt('s3', 'azure', 'gcs'),
    }),
  region: text(100)
    .default('us-east-1')
    .meta({ label: 'Region', directs_secrets: true, ...shownAt('s3') }),
  endpoint: z
    .url({ protocol: /^https?$/ })
    .max(2000)
    .optional()
    .meta({
      label: 'Endpoint',
      directs_secrets: true,
      keyed_address: true,
      description: 'Only for stores other than the one of Amazon, Microsoft or Google',
      placeholder: 'https://storage.example.com',
      validates_remotely: true,
      ...shownAt('s3', 'azure', 'gcs'),
    }),
  access_key_id: text()
    .optional()
    .meta({
      label: 'Access key',
      directs_secrets: false,
      group: 'authentication',
      validates_remotely: true,
      ...shownAt('s3'),
    }),
  secret_access_key: text()
    .optional()
    .meta({ label: 'Secret key', secret: true, group: 'authentication', validates_remotely: true, ...shownAt('s3') }),
  session_token: text(10_000)
    .optional()
    .meta({
      label: 'Session token',
      description: 'Only for temporary keys',
      secret: true,
      group: 'authentication',
      ...shownAt('s3'),
    }),
  path_style: z
    .boolean()
    .default(true)
    .meta({
      label: 'Path-style addresses',
      directs_secrets: true,
      description: 'The bucket is part of the path; otherwise it is part of the host name',
      group: 'advanced',
      ...shownAt('s3'),
    }),
  timeout_seconds,
};

/** Settings of all places, but for those of S3. */
export const sourcePlaces = {
  ...httpSettings,
  ...serverSettings,
  ...ftpSettings,
  ...sftpSettings,
  ...azureSettings,
  ...gcsSettings,
};
export const destinationPlaces = {
  ...serverSettings,
  ...loginSettings,
  ...sftpSettings,
  ...azureSettings,
  ...gcsSettings,
};

const Located = z.object({ path: z.string().optional(), location: sourceLocation, ...sourcePlaces, ...s3Settings });
export type HttpLocation = Pick<z.infer<typeof Located>, keyof typeof httpSettings | 'timeout_seconds'>;
export type S3Location = Pick<z.infer<typeof Located>, keyof typeof s3Settings>;

type Given = Partial<z.infer<typeof Located>>;
const NEEDED: Record<string, (keyof Given)[]> = {
  local: ['path'],
  http: ['urls'],
  s3: ['path', 'bucket', 'access_key_id', 'secret_access_key'],
  sftp: ['path', 'host', 'username'],
  ftp: ['path', 'host'],
  azure: ['path', 'bucket', 'storage_account'],
  gcs: ['path', 'bucket', 'service_account_key'],
};

/** Settings that a choice within the location needs. */
function neededToSignIn({ location, authentication, username, private_key, sas_token }: Given): (keyof Given)[] {
  if (location === 'http' && authentication === 'bearer') return ['token'];
  if (location === 'http' && authentication === 'basic') return ['username'];
  if (location === 'azure' && !sas_token) return ['account_key'];
  if (location === 'ftp' && username) return ['password'];
  return location === 'sftp' && !private_key ? ['password'] : [];
}

/** Reports settings that the location needs and that are missing. */
export function requireLocation(settings: Given, ctx: z.core.$RefinementCtx): void {
  for (const name of [...(NEEDED[settings.location ?? 'local'] ?? []), ...neededToSignIn(settings)]) {
    const value = settings[name];
    if (Array.isArray(value) ? value.length > 0 : value !== undefined && value !== '') continue;
    // The issue that zod raises for a required field: it counts as missing, not as invalid.
    ctx.addIssue({ code: 'invalid_type', expected: 'string', input: undefined, path: [name] });
  }
}
