import type { WriteTarget } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { withMembers } from './archives/members.ts';
import type { DestinationContext, FileDestinationConfig, FileSourceConfig, SourceContext } from './settings/files.ts';
import { azureSourceStore } from './stores/azure/files.ts';
import { azureDestinationStore } from './stores/azure/table.ts';
import { ftpSourceStore } from './stores/ftp/files.ts';
import { gcsSourceStore } from './stores/gcs/files.ts';
import { gcsDestinationStore } from './stores/gcs/table.ts';
import { httpSourceStore } from './stores/http-listing.ts';
import { localSourceStore } from './stores/local-files.ts';
import { localDestinationStore } from './stores/local-folder.ts';
import { s3SourceStore } from './stores/s3-listing.ts';
import { s3DestinationStore } from './stores/s3-upload.ts';
import { sftpSourceStore } from './stores/sftp/files.ts';
import { sftpDestinationStore } from './stores/sftp/table.ts';
import type { DestinationStore, FoundFile, SourceStore, TableStore } from './stores/store.ts';

/** Every store that sources read from, by the value of `location`. */
const SOURCES: Record<FileSourceConfig['location'], SourceStore> = {
  local: localSourceStore,
  http: httpSourceStore,
  s3: s3SourceStore,
  sftp: sftpSourceStore,
  ftp: ftpSourceStore,
  azure: azureSourceStore,
  gcs: gcsSourceStore,
};

/** Every store that destinations write to, by the value of `location`. */
const DESTINATIONS: Record<FileDestinationConfig['location'], DestinationStore> = {
  local: localDestinationStore,
  s3: s3DestinationStore,
  sftp: sftpDestinationStore,
  azure: azureDestinationStore,
  gcs: gcsDestinationStore,
};

export const sourceCheckSteps = (ctx: SourceContext) => SOURCES[ctx.config.location].checkSteps?.(ctx) ?? [];

/** The files that the settings name. */
export const findSourceFiles = async (ctx: SourceContext): Promise<FoundFile[]> =>
  withMembers(ctx, await SOURCES[ctx.config.location].find(ctx));

/** @throws ConfigurationError if no file matches */
export async function requireSourceFiles(ctx: SourceContext): Promise<FoundFile[]> {
  const files = await findSourceFiles(ctx);
  if (files.length === 0) throw new ConfigurationError('no_files', `No file matches "${ctx.config.path}"`);
  return files;
}

/** The name of all the files together, as shown to users. */
export const placeName = (config: FileSourceConfig): string => SOURCES[config.location].placeName(config);

export const destinationCheckSteps = (ctx: DestinationContext) => DESTINATIONS[ctx.config.location].checkSteps(ctx);

/** @throws FencedError if a newer attempt has claimed the stream */
export const openTableStore = (ctx: DestinationContext, target: WriteTarget): Promise<TableStore> =>
  DESTINATIONS[ctx.config.location].open(ctx, target);
