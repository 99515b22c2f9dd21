import { posix } from 'node:path';
import { defineDestination } from '../contract/connector.ts';
import { FileDestinationConfig } from '../kits/files/settings/files.ts';
import { destinationCheckSteps } from '../kits/files/stores.ts';
import { checkInOrder } from '../kits/files/stores/check-steps.ts';
import { openTableWriter } from '../kits/files/table-writer.ts';
import { digestTable } from './digest.ts';

export const fileDestination = defineDestination<FileDestinationConfig>({
  type: 'destination',
  name: 'file',
  display_name: 'Files',
  description: 'CSV, JSON Lines or Parquet files in the files folder of this service or in S3, one folder per table',
  category: 'file',
  version: '1.0.0',
  release_stage: 'generally_available',
  auth_methods: ['none', 'api_key'],
  supported_destination_sync_modes: ['append', 'overwrite'],
  config: FileDestinationConfig,
  locate: ({ location = 'local', path = '.', endpoint = '', bucket = '' }) => ({
    store: [location, ...(location === 's3' ? [endpoint, bucket] : []), posix.normalize(path)].join(' '),
    schema: '',
  }),
  check: async (ctx) => ({ checks: await checkInOrder(destinationCheckSteps(ctx)) }),
  open: openTableWriter,
  digest: digestTable,
});
