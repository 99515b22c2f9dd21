const SCHEMES: Record<string, string> = {
  'postgres:': 'postgres',
  'postgresql:': 'postgres',
  'mysql:': 'mysql',
  'mariadb:': 'mysql',
  's3:': 'file',
};

/** The connectors whose settings a connection string can hold. */
export const takesConnectionString = (connector_name: string): boolean =>
  Object.values(SCHEMES).includes(connector_name);

export const EXAMPLES: Record<string, string> = {
  postgres: 'postgres://user:password@host:5432/database',
  mysql: 'mysql://user:password@host:3306/database',
  file: 's3://bucket/folder/*.csv',
};

const TLS: Record<string, string> = { REQUIRED: 'require', VERIFY_CA: 'verify-ca', VERIFY_IDENTITY: 'verify-full' };

/** The parameters that a connection string holds, or what is wrong with it. */
export function readConnectionString(
  text: string,
  connector_name: string,
  parameters: readonly { name: string }[],
): { values: Record<string, unknown> } | { problem: string } {
  const wanted = EXAMPLES[connector_name];
  let url: URL;
  try {
    url = new URL(text.trim());
  } catch {
    return { problem: `Not a connection string. Enter one such as ${wanted}` };
  }
  if (SCHEMES[url.protocol] !== connector_name) return { problem: `Enter one such as ${wanted}` };
  try {
    const all = url.protocol === 's3:' ? ofBucket(url) : ofServer(url);
    const known = Object.entries(all).filter(
      ([name, value]) => value !== '' && value !== undefined && parameters.some((one) => one.name === name),
    );
    return { values: Object.fromEntries(known) };
  } catch {
    return { problem: 'Escape % in the user name and the password as %25' };
  }
}

function ofServer(url: URL): Record<string, unknown> {
  const tls = url.searchParams.get('sslmode') ?? url.searchParams.get('ssl-mode') ?? '';
  const schemas = url.searchParams.get('schema') ?? '';
  return {
    // A URL writes an IPv6 address in brackets.
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? undefined : Number(url.port),
    database: decodeURIComponent(url.pathname.slice(1)),
    username: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    ssl_mode: TLS[tls.toUpperCase()] ?? (tls === 'allow' ? 'prefer' : tls),
    schemas: schemas === '' ? undefined : [schemas],
    schema: schemas,
  };
}

const ofBucket = (url: URL): Record<string, unknown> => ({
  location: 's3',
  bucket: url.hostname,
  path: decodeURIComponent(url.pathname.slice(1)),
});
