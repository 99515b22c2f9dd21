import { z } from 'zod';

export const SqliteSourceConfig = z.object({
  path: z
    .string()
    .min(1)
    .max(1000)
    .regex(/^[^*?[\]{}!\\]+$/, 'One file: a path has no wildcards')
    .meta({
      label: 'Database file',
      description: 'Below the folder for files; opened for reading only',
      placeholder: 'shop/orders.db',
      validates_remotely: true,
    }),
});
export type SqliteSourceConfig = z.infer<typeof SqliteSourceConfig>;
