import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CheckResult, defineDestination } from '../contract/connector.ts';
import { type CheckStep, checkedInOrder } from './check-steps.ts';
import { fileError, folderBelow } from '../kits/files/stores/local-files.ts';
import { Bucket, keyPrefix } from '../kits/files/stores/s3-client.ts';
import { abortUpload, beginUpload } from '../kits/files/stores/s3-upload.ts';
import { FileDestinationConfig } from './settings.ts';
import { type DestinationContext, openFileWriter } from './writer.ts';

export const fileDestination = defineDestination<FileDestinationConfig>({
  type: 'destination',
  name: 'file',
  display_name: 'Files',
  description:
    'CSV, JSON Lines or Parquet files in the folder for files of this service or in S3, a folder for each table',
  category: 'file',
  version: '1.0.0',
  release_stage: 'generally_available',
  auth_methods: ['none', 'api_key'],
  supported_destination_sync_modes: ['append', 'overwrite'],
  config: FileDestinationConfig,
  check: async (ctx) => ({ checks: await (ctx.config.location === 's3' ? checkBucket(ctx) : checkFolder(ctx)) }),
  open: openFileWriter,
});

async function checkFolder(ctx: DestinationContext): Promise<CheckResult['checks']> {
  const folder = await folderBelow(ctx.filesRoot, ctx.config.path);
  const probe = join(folder, `.check-${crypto.randomUUID()}`);
  try {
    await writeFile(probe, 'check', { flag: 'wx' });
  } catch (error) {
    throw fileError(error, ctx.config.path);
  } finally {
    await rm(probe, { force: true });
  }
  return [{ title: 'Folder', status: 'passed', message: 'A file could be written' }];
}

/** What a run does: it lists, uploads in parts, and takes away. */
async function checkBucket(ctx: DestinationContext): Promise<CheckResult['checks']> {
  const bucket = new Bucket(ctx, ctx.config);
  const prefix = `${keyPrefix(ctx.config.path)}_pipeline_state/`;
  const key = `${prefix}.check-${crypto.randomUUID()}`;
  const list = { method: 'GET', query: { 'list-type': '2', 'max-keys': '1', prefix } };
  const steps: CheckStep[] = [
    ['Bucket', 'Its objects could be listed', () => bucket.document(list, 'ListBucketResult')],
    ['Write', 'An object could be written', () => bucket.send({ method: 'PUT', key, body: 'check' })],
    [
      'Upload in parts',
      'One could be begun and given up',
      async () => abortUpload(bucket, await beginUpload(bucket, key)),
    ],
    ['Delete', 'An object could be removed', () => bucket.send({ method: 'DELETE', key })],
  ];
  return checkedInOrder(steps);
}
