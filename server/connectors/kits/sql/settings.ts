import type { ConnectionOptions } from 'node:tls';
import { z } from 'zod';
import '../../contract/parameters.ts';

export const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

/** How to reach a database server. */
export const databaseServer = (usual: { port: number; database: string; max_database_length?: number }) => ({
  // A path would mean a Unix socket on the worker's machine.
  host: z
    .string()
    .regex(/^[^/\\\s@]+$/, 'Enter a host name or an IP address')
    .meta({ label: 'Host', directs_secrets: true, placeholder: 'db.example.com' }),
  port: z.int().min(1).max(65_535).default(usual.port).meta({ label: 'Port', directs_secrets: true }),
  database: z
    .string()
    .min(1)
    .max(usual.max_database_length ?? 10_000)
    .meta({ label: 'Database', directs_secrets: false, placeholder: usual.database, validates_remotely: true }),
  username: z.string().min(1).meta({ label: 'User name', directs_secrets: false, group: 'authentication' }),
  password: z.string().default('').meta({ label: 'Password', secret: true, group: 'authentication' }),
  ssl_mode: z
    .enum(SSL_MODES)
    .default('prefer')
    .meta({
      label: 'TLS',
      directs_secrets: true,
      description: "Only verify-ca and verify-full check the server's certificate",
      value_labels: {
        disable: 'Never',
        prefer: 'If offered, not verified',
        require: 'Always, not verified',
        'verify-ca': 'Always, verify CA',
        'verify-full': 'Always, verify CA and host',
      },
    }),
  ssl_ca: z
    .string()
    .optional()
    .meta({
      label: 'CA certificate',
      directs_secrets: true,
      description: 'In PEM format. Leave empty to trust the well-known authorities',
      placeholder: '-----BEGIN CERTIFICATE-----',
      visible_when: { parameter: 'ssl_mode', equals: ['verify-ca', 'verify-full'] },
    }),
});

/** Time limits. `statements`: what the server does with a statement that takes longer. */
export const databaseTimeouts = (statements: string) => ({
  connect_timeout_seconds: z
    .int()
    .min(1)
    .max(300)
    .default(10)
    .meta({ label: 'Connect timeout (seconds)', directs_secrets: false, group: 'advanced' }),
  statement_timeout_seconds: z
    .int()
    .min(0)
    .max(604_800)
    .default(0)
    .meta({
      label: 'Statement timeout (seconds)',
      directs_secrets: false,
      description: `${statements}. 0 means no limit`,
      group: 'advanced',
    }),
});

export type TlsSettings = { ssl_mode: (typeof SSL_MODES)[number]; ssl_ca?: string };

/** The options of the TLS handshake for `ssl_mode`; null: no TLS. */
export function tlsOptions({ ssl_mode, ssl_ca }: TlsSettings): ConnectionOptions | null {
  switch (ssl_mode) {
    case 'disable':
      return null;
    case 'prefer':
    case 'require':
      return { rejectUnauthorized: false };
    case 'verify-ca':
      return { rejectUnauthorized: true, ca: ssl_ca || undefined, checkServerIdentity: () => undefined };
    case 'verify-full':
      return { rejectUnauthorized: true, ca: ssl_ca || undefined };
  }
}
