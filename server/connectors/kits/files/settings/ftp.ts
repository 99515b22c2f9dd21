import { z } from 'zod';
import { shownAt, text } from './shown-at.ts';

export const ftpSettings = {
  ftp_encryption: z
    .enum(['explicit', 'implicit', 'none'])
    .default('explicit')
    .meta({
      label: 'Encryption',
      directs_secrets: true,
      description: 'Without it, the password and the files can be read on the way',
      value_labels: { explicit: 'FTPS, explicit TLS', implicit: 'FTPS, implicit TLS', none: 'None (FTP)' },
      ...shownAt('ftp'),
    }),
  check_certificate: z
    .boolean()
    .default(true)
    .meta({
      label: 'Check the certificate',
      directs_secrets: true,
      description: "That a trusted authority has issued the server's certificate, for this host",
      group: 'authentication',
      ...shownAt('ftp'),
    }),
  ca_certificate: text(100_000)
    .optional()
    .meta({
      label: 'CA certificate',
      directs_secrets: true,
      description: 'In PEM format. Leave empty to trust the well-known authorities',
      placeholder: '-----BEGIN CERTIFICATE-----',
      group: 'authentication',
      ...shownAt('ftp'),
    }),
};

const All = z.object(ftpSettings);
export type FtpLocation = z.infer<typeof All> & {
  host?: string;
  port?: number;
  username: string;
  password?: string;
  timeout_seconds: number;
};
