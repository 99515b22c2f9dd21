import type { ConnectionOptions } from 'node:tls';
import { z } from 'zod';
import '../../contract/parameters.ts';

export const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

/** How to reach a database server. */
export const databaseServer = (usual: { port: number; database: string; longest_database?: number }) => ({
  // A path would be taken as a Unix socket of the worker's machine.
  host: z
    .string()
    .regex(/^[^/\\\s@]+$/, 'A host name or an address')
    .meta({ label: 'Host', placeholder: 'db.example.com' }),
  port: z.int().min(1).max(65_535).default(usual.port).meta({ label: 'Port' }),
  database: z
    .string()
    .min(1)
    .max(usual.longest_database ?? 10_000)
    .meta({ label: 'Database', placeholder: usual.database, validates_remotely: true }),
  username: z.string().min(1).meta({ label: 'User name', group: 'authentication' }),
  password: z.string().default('').meta({ label: 'Password', secret: true, group: 'authentication' }),
  ssl_mode: z
    .enum(SSL_MODES)
    .default('prefer')
    .meta({
      label: 'TLS',
      description: "Only verify-ca and verify-full check the server's certificate",
      value_labels: {
        disable: 'Never',
        prefer: 'If the server offers it, certificate not checked',
        require: 'Always, certificate not checked',
        'verify-ca': 'Always, certificate checked',
        'verify-full': 'Always, certificate and host name checked',
      },
    }),
  ssl_ca: z
    .string()
    .optional()
    .meta({
      label: 'CA certificate',
      description: 'PEM. Absent: the well-known authorities',
      placeholder: '-----BEGIN CERTIFICATE-----',
      visible_when: { parameter: 'ssl_mode', equals: ['verify-ca', 'verify-full'] },
    }),
});

/** How long it may take. `statements` says what the server does with one that takes longer. */
export const databaseTimeouts = (statements: string) => ({
  connect_timeout_seconds: z
    .int()
    .min(1)
    .max(300)
    .default(10)
    .meta({ label: 'Connect timeout in seconds', group: 'advanced' }),
  statement_timeout_seconds: z
    .int()
    .min(0)
    .max(604_800)
    .default(0)
    .meta({ label: 'Statement timeout in seconds', description: `${statements}; 0: no limit`, group: 'advanced' }),
});

export type TlsSettings = { ssl_mode: (typeof SSL_MODES)[number]; ssl_ca?: string };

/** What `ssl_mode` means for the handshake; null: without TLS. */
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
