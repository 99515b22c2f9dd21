import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { readAddress } from './base-path.ts';
import { readOrMakeKeyFile } from './key-file.ts';
import { isNetwork } from './net/addresses.ts';
import type { ProviderSettings, readProviders } from './provider-settings.ts';

/** The settings of the process. `readSettings` reads them from the environment, with secrets by reference. */
export interface Config {
  HOST: string;
  /** 0: the operating system assigns a free port. */
  PORT: number;
  /** Null: the service starts the embedded PostgreSQL. */
  DATABASE_URL: string | null;
  /** The role that owns the tables, for migrations and commands. Null: that of DATABASE_URL. */
  DATABASE_OWNER_URL: string | null;
  /** The address under which users reach the service; links in messages start with it. Default: HOST and PORT. */
  PUBLIC_URL: string;
  /** The path of PUBLIC_URL, below which a proxy serves the service. Empty: the service has a host of its own. */
  BASE_PATH: string;
  /** Absolute path. */
  DATA_DIR: string;
  /** `file:///…` or `s3://bucket/prefix?…`. Default: the folder DATA_DIR/objects. */
  OBJECT_STORE_URL: string;
  SECRET_KEY: string;
  BOOTSTRAP_EMAIL: string;
  BOOTSTRAP_API_KEY: string | null;
  DEMO: boolean;
  WORKER_CONCURRENCY: number;
  /** Pause before the second attempt of a failed stream. It triples with each further attempt, up to 30 minutes. */
  RETRY_BACKOFF_SECONDS: number;
  /** An incremental stream commits rows and state after this amount; with merges, after four times the amount. */
  CHECKPOINT_KB: number;
  /** A run of a continuous connection ends after this time, and the next one begins. */
  CONTINUOUS_RUN_MINUTES: number;
  /** An attempt ends when neither side of a stream passes anything for this long, and nothing shows that it works. */
  IDLE_LIMIT_SECONDS: number;
  /** An attempt ends when it has waited for one lock for this long. */
  LOCK_WAIT_LIMIT_SECONDS: number;
  /** `smtp://` or `smtps://`, with username and password if the server requires them. Null: no mail is sent. */
  SMTP_URL: string | null;
  MAIL_FROM: string;
  /** Pause before the second attempt of an action. The later pauses are 5, 15, 60, 180, 360 and 720 times as long. */
  DELIVERY_BACKOFF_SECONDS: number;
  /** `host:port` or `cidr:port` that may be called even if the address is not public, and over plain http. */
  EGRESS_ALLOW: readonly string[];
  /** Addresses and networks of proxies whose X-Forwarded-For names the client. */
  TRUSTED_PROXIES: readonly string[];
  /** Where database connections and SSH tunnels may lead. `public_only`: public addresses and those in EGRESS_ALLOW. */
  CONNECTOR_NETWORK: 'any' | 'public_only';
  /** Makes the connectors for tests usable. */
  TEST_CONNECTORS: boolean;
  /** Providers by which people sign in to the console, beside API keys. */
  OIDC_PROVIDERS: readonly ProviderSettings[];
  /**
   * Beginnings of references (`env:…`, `file:/…/`, `vault:…`) by which accounts may name secrets. `{account_id}` stands for
   * the account. None: values in these forms are secrets like any other.
   */
  SECRET_REFERENCES: readonly string[];
  /** Where secrets by `vault:` are read, with a token or the `file:/path` of one. */
  VAULT_ADDR: string | null;
  VAULT_TOKEN: string | null;
  VAULT_NAMESPACE: string | null;
  /** A console session without a request for this long ends. */
  SESSION_IDLE_HOURS: number;
  /** A console session of a sign-in by a provider ends after this time, whether it is used or not. */
  SESSION_MAX_HOURS: number;
  /** Events older than this are deleted, with their deliveries. A billing plan can set less. */
  EVENT_RETENTION_DAYS: number;
  /** Deliveries of actions older than this are deleted. A billing plan can set less. */
  DELIVERY_RETENTION_DAYS: number;
  /** Runs older than this are deleted, with their streams. A billing plan can set less. */
  RUN_RETENTION_DAYS: number;
  /** Usage by run and attempt is summed by day and stream after this. The sums are kept. */
  USAGE_DETAIL_DAYS: number;
  /** Port on which a worker serves its metrics; 0: a free one. Null: it does not. The API serves its own on PORT. */
  METRICS_PORT: number | null;
  /** What scrapers of the metrics have to send. Null: nothing, and names of connections are not shown. */
  METRICS_TOKEN: string | null;
  /** Where traces are sent by OTLP over HTTP, without `/v1/traces`. Null: there are no traces. */
  OTEL_EXPORTER_OTLP_ENDPOINT: string | null;
  /** `name=value`, separated by commas. */
  OTEL_EXPORTER_OTLP_HEADERS: string | null;
  OTEL_SERVICE_NAME: string;
  /** Requests of sources and destinations over HTTP carry the header `traceparent`. */
  TRACE_SOURCE_REQUESTS: boolean;
  /** Where the lineage of runs is sent as events of OpenLineage. Null: nowhere. */
  OPENLINEAGE_URL: string | null;
  OPENLINEAGE_API_KEY: string | null;
  /** The beginning of the namespaces of jobs, before the id of the account. */
  OPENLINEAGE_NAMESPACE: string;
  /** Workers also log each entry of the audit log as a JSON line, whatever the level of the log. */
  AUDIT_LOG_LINES: boolean;
  LOG_LEVEL: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

/** An invalid setting. The message is one line for the terminal and names the variable. */
export class ConfigError extends Error {
  override name = 'ConfigError';
}

const NETWORKS = ['any', 'public_only'] as const;
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;
const SWITCH: Record<string, boolean> = {
  '1': true,
  true: true,
  yes: true,
  on: true,
  '0': false,
  false: false,
  no: false,
  off: false,
};

const urlOf =
  (...protocols: string[]) =>
  (value: string) =>
    protocols.includes(URL.parse(value)?.protocol ?? '');

const wholeNumber = (from: number, to: number) => {
  const message = `must be a whole number from ${from} to ${to}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, message)
    .transform(Number)
    .pipe(z.number().min(from, message).max(to, message));
};

/** All zeros, in any encoding, are a common placeholder; `=` is base64 padding. */
const isOneCharacterRepeated = (value: string) => new Set(value.replace(/=+$/, '')).size <= 1;

const secretKey = z
  .string()
  .min(32, 'must have at least 32 characters')
  .refine((value) => !isOneCharacterRepeated(value), 'must be random, not one character repeated');

const onOff = z
  .string()
  .toLowerCase()
  .refine((value) => value in SWITCH, 'must be 1 or 0')
  .transform((value) => SWITCH[value] === true);

function providersIn(text: string, context: z.RefinementCtx): ProviderSettings[] {
  // Loaded with its first use: most processes have no providers.
  const settings = require('./provider-settings.ts') as { readProviders: typeof readProviders };
  try {
    return settings.readProviders(text);
  } catch (error) {
    context.addIssue((error as Error).message);
    return z.NEVER;
  }
}

const Environment = z.object({
  HOST: z.string().regex(/^\S+$/, 'must be a host name or an IP address').default('127.0.0.1'),
  PORT: wholeNumber(0, 65_535).default(8080),
  DATABASE_URL: z.string().refine(urlOf('postgres:', 'postgresql:'), 'must be a postgres:// URL').optional(),
  DATABASE_OWNER_URL: z.string().refine(urlOf('postgres:', 'postgresql:'), 'must be a postgres:// URL').optional(),
  PUBLIC_URL: z.string().refine(urlOf('http:', 'https:'), 'must be an http:// or https:// URL').optional(),
  BASE_PATH: z.string().optional(),
  DATA_DIR: z.string().default('.data'),
  OBJECT_STORE_URL: z.string().refine(urlOf('file:', 's3:'), 'must be a file:/// or s3://bucket URL').optional(),
  SECRET_KEY: secretKey.optional(),
  BOOTSTRAP_EMAIL: z
    .string()
    .regex(/^[^\s@]+@[^\s@]+$/, 'must be an e-mail address')
    .default('admin@localhost'),
  BOOTSTRAP_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]{32,512}$/, 'must have 32 to 512 printable ASCII characters without spaces')
    .optional(),
  DEMO: onOff.default(true),
  WORKER_CONCURRENCY: wholeNumber(1, 64).default(4),
  RETRY_BACKOFF_SECONDS: wholeNumber(0, 1800).default(10),
  CHECKPOINT_KB: wholeNumber(1, 1024 * 1024).default(32 * 1024),
  CONTINUOUS_RUN_MINUTES: wholeNumber(1, 720).default(360),
  IDLE_LIMIT_SECONDS: wholeNumber(1, 86_400).default(60),
  LOCK_WAIT_LIMIT_SECONDS: wholeNumber(1, 86_400).default(3600),
  SMTP_URL: z.string().refine(urlOf('smtp:', 'smtps:'), 'must be an smtp:// or smtps:// URL').optional(),
  MAIL_FROM: z
    .string()
    .regex(/^([^<>\r\n]+<)?[^\s@<>]+@[^\s@<>]+>?$/, 'must be an e-mail address, or a name and <address>')
    .default('Data pipelines <no-reply@localhost>'),
  DELIVERY_BACKOFF_SECONDS: wholeNumber(0, 3600).default(60),
  EGRESS_ALLOW: z
    .string()
    .regex(
      /^\s*[^\s,]+:\d{1,5}(\s*,\s*[^\s,]+:\d{1,5})*\s*$/,
      'must be a comma-separated list of host:port or cidr:port',
    )
    .transform((text) => text.split(',').map((entry) => entry.trim()))
    .optional(),
  TRUSTED_PROXIES: z
    .string()
    .transform((text) => text.split(',').map((entry) => entry.trim()))
    .refine((entries) => entries.every(isNetwork), 'must be a comma-separated list of addresses or networks (CIDR)')
    .optional(),
  CONNECTOR_NETWORK: z.enum(NETWORKS, `must be one of ${NETWORKS.join(', ')}`).default('any'),
  TEST_CONNECTORS: onOff.default(false),
  OIDC_PROVIDERS: z.string().transform(providersIn).optional(),
  SECRET_REFERENCES: z
    .string()
    .transform((text) => text.split(',').map((entry) => entry.trim()))
    .refine(
      (entries) => entries.every((entry) => /^(env:[A-Za-z_]\w*|file:\/[^/]+\/(.*\/)?|vault:[^/#]+.*)$/.test(entry)),
      'must be a comma-separated list of env:PREFIX, file:/folder/ and vault:path',
    )
    .optional(),
  VAULT_ADDR: z.string().refine(urlOf('http:', 'https:'), 'must be an http:// or https:// URL').optional(),
  VAULT_TOKEN: z
    .string()
    .regex(/^\S{1,2000}$/, 'must be a token or file:/path')
    .optional(),
  VAULT_NAMESPACE: z
    .string()
    .regex(/^\S{1,500}$/, 'must be the path of a namespace')
    .optional(),
  SESSION_IDLE_HOURS: wholeNumber(1, 720).default(24),
  SESSION_MAX_HOURS: wholeNumber(1, 8760).default(168),
  EVENT_RETENTION_DAYS: wholeNumber(1, 36_500).default(90),
  DELIVERY_RETENTION_DAYS: wholeNumber(1, 36_500).default(90),
  RUN_RETENTION_DAYS: wholeNumber(1, 36_500).default(365),
  USAGE_DETAIL_DAYS: wholeNumber(35, 36_500).default(400),
  METRICS_PORT: wholeNumber(0, 65_535).optional(),
  METRICS_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]{16,512}$/, 'must have 16 to 512 printable ASCII characters without spaces')
    .optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .string()
    .refine(urlOf('http:', 'https:'), 'must be an http:// or https:// URL')
    .optional(),
  OTEL_EXPORTER_OTLP_HEADERS: z
    .string()
    .regex(
      /^[^=,\s]+=[^,\s%]*(%[0-9A-Fa-f]{2}[^,\s%]*)*(,[^=,\s]+=[^,\s%]*(%[0-9A-Fa-f]{2}[^,\s%]*)*)*$/,
      'must be a list of name=value',
    )
    .optional(),
  OTEL_SERVICE_NAME: z.string().default('data-pipelines'),
  TRACE_SOURCE_REQUESTS: onOff.default(false),
  OPENLINEAGE_URL: z.string().refine(urlOf('http:', 'https:'), 'must be an http:// or https:// URL').optional(),
  OPENLINEAGE_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]{1,2000}$/, 'must have printable ASCII characters without spaces')
    .optional(),
  OPENLINEAGE_NAMESPACE: z.string().default('data-pipelines'),
  AUDIT_LOG_LINES: onOff.default(false),
  LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
});

/**
 * Reads the settings. An empty variable counts as absent. Without SECRET_KEY, a random key is created once in
 * `DATA_DIR/secret.key`.
 * @throws ConfigError
 */
export function readConfig(env: Record<string, string | undefined> = process.env): Readonly<Config> {
  const present = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const parsed = Environment.safeParse(present);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new ConfigError(`${String(issue?.path[0])} ${issue?.message}`);
  }
  const { DATABASE_URL, OBJECT_STORE_URL, BOOTSTRAP_API_KEY, SECRET_KEY, ...settings } = parsed.data;
  const { PUBLIC_URL, SMTP_URL, EGRESS_ALLOW, TRUSTED_PROXIES, METRICS_PORT, METRICS_TOKEN, OIDC_PROVIDERS, ...rest } =
    settings;
  const DATA_DIR = resolve(rest.DATA_DIR);
  return Object.freeze({
    ...rest,
    DATA_DIR,
    DATABASE_URL: DATABASE_URL ?? null,
    DATABASE_OWNER_URL: rest.DATABASE_OWNER_URL ?? null,
    OBJECT_STORE_URL: OBJECT_STORE_URL ?? pathToFileURL(join(DATA_DIR, 'objects')).href,
    SECRET_KEY: SECRET_KEY ?? keyOfDataDir(DATA_DIR),
    BOOTSTRAP_API_KEY: BOOTSTRAP_API_KEY ?? null,
    ...addressOf(PUBLIC_URL ?? addressAt(rest), rest.BASE_PATH),
    SMTP_URL: SMTP_URL ?? null,
    METRICS_PORT: METRICS_PORT ?? null,
    METRICS_TOKEN: METRICS_TOKEN ?? null,
    EGRESS_ALLOW: EGRESS_ALLOW ?? [],
    TRUSTED_PROXIES: TRUSTED_PROXIES ?? [],
    OIDC_PROVIDERS: OIDC_PROVIDERS ?? [],
    OTEL_EXPORTER_OTLP_ENDPOINT: rest.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
    OTEL_EXPORTER_OTLP_HEADERS: rest.OTEL_EXPORTER_OTLP_HEADERS ?? null,
    OPENLINEAGE_URL: rest.OPENLINEAGE_URL ?? null,
    OPENLINEAGE_API_KEY: rest.OPENLINEAGE_API_KEY ?? null,
    SECRET_REFERENCES: rest.SECRET_REFERENCES ?? [],
    VAULT_ADDR: rest.VAULT_ADDR ?? null,
    VAULT_TOKEN: rest.VAULT_TOKEN ?? null,
    VAULT_NAMESPACE: rest.VAULT_NAMESPACE ?? null,
  });
}

const addressAt = ({ HOST, PORT }: Pick<Config, 'HOST' | 'PORT'>) =>
  `http://${HOST.includes(':') ? `[${HOST}]` : HOST}:${PORT}`;

function addressOf(public_url: string, base_path: string | undefined) {
  try {
    return readAddress(public_url, base_path);
  } catch (error) {
    throw new ConfigError(`${base_path ? 'BASE_PATH' : 'The path of PUBLIC_URL'} ${(error as Error).message}`);
  }
}

/** The file that holds SECRET_KEY; null: the variable does. */
export const secretKeyFile = ({ DATA_DIR }: Config, env: Record<string, string | undefined> = process.env) =>
  env.SECRET_KEY ? null : join(DATA_DIR, 'secret.key');

/** @throws ConfigError if the text cannot be a SECRET_KEY */
export function checkSecretKey(key: string, where: string): string {
  const checked = secretKey.safeParse(key);
  if (!checked.success) throw new ConfigError(`The key in ${where} ${checked.error.issues[0]?.message}`);
  return key;
}

/** Whether PORT is set. If not, a second checkout on the machine may use another port. */
export const isPortSet = (env: Record<string, string | undefined> = process.env) => Boolean(env.PORT);

/** The environment for a worker: the same settings, with the database at `url`, and without its owner. */
export function environmentOf(config: Config, url: string): Record<string, string | undefined> {
  const settings = Object.entries(config).map(([name, value]) => [name, textOf(value)]);
  return { ...process.env, ...Object.fromEntries(settings), DATABASE_URL: url, DATABASE_OWNER_URL: '' };
}

function textOf(value: Config[keyof Config]): string {
  if (value === null) return '';
  if (typeof value !== 'object') return String(value);
  return value.every((one) => typeof one === 'string') ? value.join() : JSON.stringify(value);
}

/** The variables of the process. */
export const ENVIRONMENT: Record<string, string | undefined> = process.env;

/** A variable that a setting refers to. */
export const variable = (name: string): string | undefined => process.env[name];

/** Settings of the runtime, trust and folders that a process for work of users inherits. It gets no other: they hold secrets. */
const INHERITED = ['BUN_BE_BUN', 'PATH', 'HOME', 'TMPDIR', 'NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'];

/** The environment for a process that does work of users. */
export const limitedEnvironment = (): Record<string, string | undefined> => ({
  ...Object.fromEntries(INHERITED.map((name) => [name, process.env[name]])),
  TZ: 'UTC',
});

function keyOfDataDir(dataDir: string): string {
  const path = join(dataDir, 'secret.key');
  let key: string;
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    key = readOrMakeKeyFile(path);
  } catch (error) {
    throw new ConfigError(`DATA_DIR cannot be used: ${(error as Error).message}`);
  }
  const checked = secretKey.safeParse(key);
  if (!checked.success) throw new ConfigError(`SECRET_KEY in ${path} ${checked.error.issues[0]?.message}`);
  return key;
}
