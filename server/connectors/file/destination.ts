import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defineDestination } from '../define.ts';
import { fileError, folderBelow } from './root.ts';
import { FileDestinationConfig } from './settings.ts';
import { openFileWriter } from './writer.ts';

export const fileDestination = defineDestination<FileDestinationConfig>({
  type: 'destination',
  name: 'file',
  display_name: 'Files',
  description: 'CSV, JSON Lines or Parquet files in the folder for files of this service, a folder for each table',
  category: 'file',
  version: '1.0.0',
  release_stage: 'generally_available',
  auth_methods: ['none'],
  supported_destination_sync_modes: ['append', 'overwrite'],
  config: FileDestinationConfig,
  async check(ctx) {
    const folder = await folderBelow(ctx.filesRoot, ctx.config.path);
    const probe = join(folder, `.check-${crypto.randomUUID()}`);
    try {
      await writeFile(probe, 'check', { flag: 'wx' });
    } catch (error) {
      throw fileError(error, ctx.config.path);
    } finally {
      await rm(probe, { force: true });
    }
    return { checks: [{ title: 'Folder', status: 'passed', message: 'A file could be written' }] };
  },
  open: openFileWriter,
});
