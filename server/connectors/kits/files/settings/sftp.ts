import { z } from 'zod';
import { shownAt, text } from './shown-at.ts';

/** Of servers with folders. User name and password are those of every location that has them. */
export const serverSettings = {
  host: z
    .string()
    .max(255)
    // A path would mean a Unix socket on the worker's machine.
    .regex(/^[^/\\\s@]+$/, 'Enter a host name or an IP address')
    .optional()
    .meta({ label: 'Host', directs_secrets: true, placeholder: 'files.example.com', ...shownAt('sftp', 'ftp') }),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .meta({
      label: 'Port',
      directs_secrets: true,
      description: 'Default: 22; with FTP 21, with implicit TLS 990',
      ...shownAt('sftp', 'ftp'),
    }),
};

export const sftpSettings = {
  private_key: text(20_000)
    .optional()
    .meta({
      label: 'Private key',
      description: "In OpenSSH's or PEM format",
      secret: true,
      group: 'authentication',
      ...shownAt('sftp'),
    }),
  passphrase: text()
    .optional()
    .meta({
      label: 'Passphrase',
      description: 'Only for an encrypted private key',
      secret: true,
      group: 'authentication',
      ...shownAt('sftp'),
    }),
  host_key_fingerprint: z
    .string()
    .regex(/^SHA256:[A-Za-z0-9+/]{43}$/, 'Enter SHA256: and 43 characters, as ssh-keygen -l shows it')
    .optional()
    .meta({
      label: 'Host key fingerprint',
      directs_secrets: true,
      description: 'The only host key to accept. The test shows it. Empty: any key',
      placeholder: 'SHA256:…',
      group: 'authentication',
      ...shownAt('sftp'),
    }),
};

const All = z.object({ ...serverSettings, ...sftpSettings });
export type SftpLocation = z.infer<typeof All> & { username: string; password?: string; timeout_seconds: number };
