import { posix } from 'node:path';
import { defineDestination } from '../contract/connector.ts';
import { FileDestinationConfig } from '../kits/files/settings/files.ts';
import { destinationCheckSteps } from '../kits/files/stores.ts';
import { checkInOrder } from '../kits/files/stores/check-steps.ts';
import { openTableWriter } from '../kits/files/table-writer.ts';
import { digestTable } from './digest.ts';

interface Place {
  endpoint: string;
  bucket: string;
  storage_account: string;
}

/** What tells the places of a store apart. */
const PLACES: Record<FileDestinationConfig['location'], (place: Place) => string[]> = {
  local: () => [],
  s3: ({ endpoint, bucket }) => [endpoint, bucket],
  azure: ({ endpoint, bucket, storage_account }) => [endpoint, storage_account, bucket],
};

export const fileDestination = defineDestination<FileDestinationConfig>({
  type: 'destination',
  name: 'file',
  display_name: 'Files',
  description:
    'CSV, JSON Lines or Parquet files in the files folder of this service, in S3 or in Azure Blob Storage, one folder per table',
  category: 'file',
  version: '1.0.0',
  release_stage: 'generally_available',
  auth_methods: ['none', 'api_key'],
  supported_destination_sync_modes: ['append', 'overwrite'],
  config: FileDestinationConfig,
  locate: ({ location = 'local', path = '.', endpoint = '', bucket = '', storage_account = '' }) => ({
    store: [location, ...PLACES[location]({ endpoint, bucket, storage_account }), posix.normalize(path)].join(' '),
    schema: '',
  }),
  check: async (ctx) => ({ checks: await checkInOrder(destinationCheckSteps(ctx)) }),
  open: openTableWriter,
  digest: digestTable,
});
