import { type Config, ConfigError, ENVIRONMENT, readConfig } from './config.ts';

/** Settings that hold a secret. VAULT_TOKEN and the client secrets in OIDC_PROVIDERS are read at each use instead. */
const SETTINGS = [
  'DATABASE_URL',
  'DATABASE_OWNER_URL',
  'OBJECT_STORE_URL',
  'SECRET_KEY',
  'BOOTSTRAP_API_KEY',
  'SMTP_URL',
  'METRICS_TOKEN',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OPENLINEAGE_API_KEY',
] as const satisfies readonly (keyof Config)[];

type Environment = Record<string, string | undefined>;

/**
 * The settings of this process, with the secrets that they name by `env:NAME`, `file:/path` or `vault:path#field`. They are
 * read once.
 * @throws ConfigError
 */
export async function readSettings(env: Environment = ENVIRONMENT): Promise<Readonly<Config>> {
  const read = { ...env };
  for (const name of SETTINGS) {
    const value = env[name] ?? '';
    if (REFERENCE.test(value)) read[name] = await secretOf(env, name, value);
  }
  return readConfig(read);
}

/** With two slashes it is an address: that of the folder of OBJECT_STORE_URL. */
const REFERENCE = /^(env:|file:\/(?!\/)|vault:)/;

const FORMS = 'env:NAME, file:/path, vault:path#field';

async function secretOf(env: Environment, name: string, reference: string): Promise<string> {
  // Loaded with its first use: most processes never need it.
  const { isReference, readOwnReference, ReferenceError } = await import('./secret-references.ts');
  if (!isReference(reference)) throw new ConfigError(`${name} must be ${FORMS}, or the value itself`);
  const { VAULT_ADDR, VAULT_TOKEN, VAULT_NAMESPACE } = env;
  const vault = {
    VAULT_ADDR: VAULT_ADDR || null,
    VAULT_TOKEN: VAULT_TOKEN || null,
    VAULT_NAMESPACE: VAULT_NAMESPACE || null,
  };
  try {
    return await readOwnReference(vault, reference, (other) => env[other]);
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    throw new ConfigError(`${name} names a secret that cannot be read: ${error.message}`);
  }
}
