import { z } from 'zod';
import { DestinationSyncMode, SyncMode } from '../streams/schema.ts';

const Side = z
  .object({
    connector_name: z.string(),
    name: z.string().meta({ description: 'A name for the source or destination.' }),
    parameters: z.record(z.string(), z.unknown()).meta({ description: 'Values of the template.' }),
    inputs: z.array(z.string()).meta({
      description: 'Parameters to enter. `secrets.token` is the key `token` of the parameter `secrets`.',
    }),
  })
  .meta({ id: 'PipelineTemplateSide' });

export const PipelineTemplateSchema = z
  .object({
    name: z.string(),
    title: z.string(),
    description: z.string(),
    needs: z.array(z.string()).meta({ description: 'What has to exist before the pipeline runs.' }),
    source: Side,
    destination: Side,
    connection: z.object({
      name: z.string(),
      destination_schema: z.string().nullable(),
      schedule: z.object({
        type: z.enum(['interval', 'continuous']),
        interval_minutes: z.literal([5, 60, 1440]).meta({ type: 'integer' }).nullable(),
        time_of_day: z.string().nullable(),
      }),
      sync_mode: SyncMode,
      destination_sync_mode: DestinationSyncMode,
      streams: z.array(z.record(z.string(), z.unknown())).meta({
        description: 'Settings of streams, as in a connection. Empty: all streams, in the modes of the template.',
      }),
    }),
  })
  .meta({ id: 'PipelineTemplateSchema' });
export type PipelineTemplateSchema = z.infer<typeof PipelineTemplateSchema>;
