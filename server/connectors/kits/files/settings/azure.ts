import { z } from 'zod';
import { shownAt, text } from './shown-at.ts';

export const azureSettings = {
  storage_account: z
    .string()
    .regex(/^[a-z0-9]{3,24}$/, 'Enter the name of a storage account: 3 to 24 lower-case letters and digits')
    .optional()
    .meta({ label: 'Storage account', directs_secrets: true, validates_remotely: true, ...shownAt('azure') }),
  account_key: text()
    .optional()
    .meta({
      label: 'Account key',
      description: 'Or a SAS token',
      secret: true,
      group: 'authentication',
      validates_remotely: true,
      ...shownAt('azure'),
    }),
  sas_token: text(10_000)
    .optional()
    .meta({
      label: 'SAS token',
      description:
        'A shared access signature with the permissions to list and read (a destination: also to create, write and delete), instead of the account key',
      placeholder: 'sv=…&sig=…',
      secret: true,
      group: 'authentication',
      validates_remotely: true,
      ...shownAt('azure'),
    }),
};

const All = z.object(azureSettings);
export type AzureLocation = z.infer<typeof All> & { bucket?: string; endpoint?: string; timeout_seconds: number };
