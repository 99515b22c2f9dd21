import { ConfigurationError } from '../../../contract/errors.ts';
import { findAddresses } from './http-listing.ts';
import type { SourceContext } from '../formats/reader.ts';
import { type FoundFile, findFiles } from './local-files.ts';
import { Bucket } from './s3-client.ts';
import { findObjects } from './s3-listing.ts';

/** The files that the settings name, wherever they are. */
export async function locatedFiles(ctx: SourceContext): Promise<FoundFile[]> {
  const { location, path = '' } = ctx.config;
  if (location === 'http') return findAddresses(ctx);
  return location === 's3' ? findObjects(new Bucket(ctx, ctx.config), path) : findFiles(ctx.filesRoot, path);
}

export async function requiredFiles(ctx: SourceContext): Promise<FoundFile[]> {
  const files = await locatedFiles(ctx);
  if (files.length === 0) throw new ConfigurationError('no_files', `No file matches "${ctx.config.path}"`);
  return files;
}

/** How users call all the files together. */
export const placeName = ({ location, path = '', urls, bucket }: SourceContext['config']): string => {
  if (location === 'http') return urls.map((url) => new URL(url)).map(({ host, pathname }) => host + pathname)[0] ?? '';
  return location === 's3' ? `${bucket}/${path}` : path;
};
