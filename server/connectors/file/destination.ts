import { posix } from 'node:path';
import { defineDestination } from '../contract/connector.ts';
import { FileDestinationConfig } from '../kits/files/settings/files.ts';
import { destinationCheckSteps } from '../kits/files/stores.ts';
import { checkInOrder } from '../kits/files/stores/check-steps.ts';
import { openTableWriter } from '../kits/files/table-writer.ts';
import { digestTable } from './digest.ts';

type Settings = Partial<FileDestinationConfig>;

/** What tells the places of a store apart. */
const PLACES: Record<FileDestinationConfig['location'], (settings: Settings) => (string | number)[]> = {
  local: () => [],
  s3: ({ endpoint = '', bucket = '' }) => [endpoint, bucket],
  // Users of one server often have a root of their own.
  sftp: ({ host = '', port = 22, username = '' }) => [host, port, username],
  azure: ({ endpoint = '', bucket = '', storage_account = '' }) => [endpoint, storage_account, bucket],
  gcs: ({ endpoint = '', bucket = '' }) => [endpoint, bucket],
};

const placeOf = (settings: Settings) => {
  const { location = 'local' } = settings;
  return [location, ...PLACES[location](settings)];
};

export const fileDestination = defineDestination<FileDestinationConfig>({
  type: 'destination',
  name: 'file',
  display_name: 'Files',
  description:
    'CSV, JSON Lines or Parquet files in the files folder of this service, over SFTP, or in S3, Azure or Google Cloud, one folder per table',
  category: 'file',
  version: '1.0.0',
  release_stage: 'generally_available',
  auth_methods: ['none', 'basic', 'api_key'],
  supported_destination_sync_modes: ['append', 'overwrite'],
  config: FileDestinationConfig,
  locate: (settings) => ({
    store: [...placeOf(settings), posix.normalize(settings.path ?? '.')].join(' '),
    schema: '',
  }),
  check: async (ctx) => ({ checks: await checkInOrder(destinationCheckSteps(ctx)) }),
  open: openTableWriter,
  digest: digestTable,
});
