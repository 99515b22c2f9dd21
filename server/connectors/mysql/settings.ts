import type { SslOptions } from 'mysql2';
import { z } from 'zod';
import '../parameters.ts';

export const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

/** How to reach a server; what source and destination share. */
const connection = {
  // A path would be taken as a Unix socket of the worker's machine.
  host: z
    .string()
    .regex(/^[^/\\\s@]+$/, 'A host name or an address')
    .meta({ label: 'Host', placeholder: 'db.example.com' }),
  port: z.int().min(1).max(65_535).default(3306).meta({ label: 'Port' }),
  database: z.string().min(1).max(64).meta({ label: 'Database', placeholder: 'shop', validates_remotely: true }),
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
    description: 'The server ends a statement that takes longer (MySQL: only one that reads); 0: no limit',
    group: 'advanced',
  }),
};

export const ZERO_DATES = ['null', 'keep'] as const;

export const MysqlSourceConfig = z.object({
  ...connection,
  zero_dates: z
    .enum(ZERO_DATES)
    .default('null')
    .meta({
      label: 'Dates like 0000-00-00',
      description: 'Dates without a year, a month or a day, which only MySQL and MariaDB can hold',
      value_labels: { null: 'NULL instead, with a warning', keep: 'As they are: for MySQL as the destination' },
      group: 'advanced',
    }),
  ...advanced,
});
export type MysqlSourceConfig = z.infer<typeof MysqlSourceConfig>;

export const MysqlDestinationConfig = z.object({ ...connection, ...advanced });
export type MysqlDestinationConfig = z.infer<typeof MysqlDestinationConfig>;
export type ServerSettings = MysqlDestinationConfig;

/** What `ssl_mode` means for the handshake; undefined: without TLS. */
export function tlsOptions({ ssl_mode, ssl_ca }: ServerSettings): SslOptions | undefined {
  switch (ssl_mode) {
    case 'disable':
      return undefined;
    case 'prefer':
    case 'require':
      return { rejectUnauthorized: false };
    case 'verify-ca':
      return { rejectUnauthorized: true, ca: ssl_ca || undefined };
    case 'verify-full':
      return { rejectUnauthorized: true, verifyIdentity: true, ca: ssl_ca || undefined };
  }
}
