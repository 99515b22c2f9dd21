import { z } from 'zod';

export const SqliteSourceConfig = z.object({
  path: z
    .string()
    .min(1)
    .max(1000)
    .regex(/^[^*?[\]{}!\\]+$/, 'Enter the path of one file, without wildcards')
    .meta({
      label: 'Database file',
      description: 'Path within the files folder. Opened read-only',
      placeholder: 'shop/orders.db',
      validates_remotely: true,
    }),
});
export type SqliteSourceConfig = z.infer<typeof SqliteSourceConfig>;
