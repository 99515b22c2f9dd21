import { z } from 'zod';

const path = z
  .string()
  .min(1)
  .max(1000)
  .regex(/^[^*?[\]{}!\\]+$/, 'One file: a path has no wildcards')
  .meta({
    label: 'Database file',
    description: 'Below the folder for files',
    placeholder: 'warehouse/shop.duckdb',
    validates_remotely: true,
  });

export const DuckDbSourceConfig = z.object({
  path,
  schemas: z.array(z.string().min(1)).default([]).meta({
    label: 'Schemas',
    description: 'Leave empty for all schemas',
  }),
});
export type DuckDbSourceConfig = z.infer<typeof DuckDbSourceConfig>;

export const DuckDbDestinationConfig = z.object({
  path: path.meta({
    label: 'Database file',
    description: 'Path below DATA_DIR/files; created if it does not exist',
    placeholder: 'warehouse/shop.duckdb',
    validates_remotely: true,
  }),
  schema: z.string().min(1).max(255).default('main').meta({
    label: 'Schema',
    description: 'Default schema of tables; created if it does not exist',
  }),
});
export type DuckDbDestinationConfig = z.infer<typeof DuckDbDestinationConfig>;
