import type { ConnectionOptions } from 'node:tls';
import { z } from 'zod';
import '../parameters.ts';

export const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

/** How to reach a server; what source and destination share. */
const connection = {
  // A path would be taken as the folder of a Unix socket of the worker's machine.
  host: z
    .string()
    .regex(/^[^/\\\s@]+$/, 'A host name or an address')
    .meta({ label: 'Host', placeholder: 'db.example.com' }),
  port: z.int().min(1).max(65_535).default(5432).meta({ label: 'Port' }),
  database: z.string().min(1).meta({ label: 'Database', placeholder: 'postgres', validates_remotely: true }),
  username: z.string().min(1).meta({ label: 'User name', group: 'authentication' }),
  password: z.string().default('').meta({ label: 'Password', secret: true, group: 'authentication' }),
  ssl_mode: z
    .enum(SSL_MODES)
    .default('prefer')
    .meta({
      label: 'TLS',
      description: 'Only verify-ca and verify-full make sure that the server is the right one',
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
};

const advanced = {
  connect_timeout_seconds: z
    .int()
    .min(1)
    .max(300)
    .default(10)
    .meta({ label: 'Connect timeout in seconds', group: 'advanced' }),
  statement_timeout_seconds: z.int().min(0).max(604_800).default(0).meta({
    label: 'Statement timeout in seconds',
    description: 'The server ends a statement that takes longer, COPY included; 0: no limit',
    group: 'advanced',
  }),
};

export const PostgresSourceConfig = z.object({
  ...connection,
  schemas: z.array(z.string().min(1)).default([]).meta({
    label: 'Schemas',
    description: 'Empty: all but those of the system',
    validates_remotely: true,
  }),
  ...advanced,
});
export type PostgresSourceConfig = z.infer<typeof PostgresSourceConfig>;

export const PostgresDestinationConfig = z.object({
  ...connection,
  schema: z.string().min(1).default('public').meta({
    label: 'Schema',
    description: 'Where tables go when the connection names no schema; made when it is absent',
    validates_remotely: true,
  }),
  ...advanced,
});
export type PostgresDestinationConfig = z.infer<typeof PostgresDestinationConfig>;

export type ServerSettings = Pick<
  PostgresSourceConfig,
  | 'host'
  | 'port'
  | 'database'
  | 'username'
  | 'password'
  | 'ssl_mode'
  | 'ssl_ca'
  | 'connect_timeout_seconds'
  | 'statement_timeout_seconds'
>;

/** What `ssl_mode` means for the handshake; false: without TLS. */
export function tlsOptions({ ssl_mode, ssl_ca }: ServerSettings): false | ConnectionOptions {
  switch (ssl_mode) {
    case 'disable':
      return false;
    case 'prefer':
    case 'require':
      return { rejectUnauthorized: false };
    case 'verify-ca':
      return { rejectUnauthorized: true, ca: ssl_ca || undefined, checkServerIdentity: () => undefined };
    case 'verify-full':
      return { rejectUnauthorized: true, ca: ssl_ca || undefined };
  }
}
