import { Glob } from 'bun';
import { ConfigurationError } from '../../../contract/errors.ts';
import type { SourceContext } from '../settings/files.ts';
import type { FoundFile } from '../stores/store.ts';
import { byteSource } from './byte-source.ts';
import { openZip, type ZipArchive, type ZipMember } from './zip.ts';

const ARCHIVE = /\.zip$/i;
/** What macOS and editors leave in archives. */
const NO_DATA = /(^|\/)(__MACOSX\/|\.)/;

/** The files, with each ZIP archive replaced by the selected files in it. */
export async function withMembers(ctx: SourceContext, files: FoundFile[]): Promise<FoundFile[]> {
  const all: FoundFile[] = [];
  for (const file of files) all.push(...(ARCHIVE.test(file.name) ? await membersOf(ctx, file) : [file]));
  return all;
}

async function membersOf(ctx: SourceContext, archive: FoundFile): Promise<FoundFile[]> {
  ctx.signal.throwIfAborted();
  const { archive_members: pattern } = ctx.config;
  const glob = pattern === undefined ? null : new Glob(pattern);
  const zip = await opened(ctx, archive);
  await zip.close();
  const wanted = zip.members.filter(({ name }) => (glob ? glob.match(name) : !NO_DATA.test(name)));
  if (wanted.length === 0) {
    const text = pattern === undefined ? 'has no files' : `has no file that matches "${pattern}"`;
    throw new ConfigurationError('no_files', `${archive.name} ${text}`);
  }
  return wanted.map((member) => foundMember(ctx, archive, member));
}

const opened = async (ctx: SourceContext, file: FoundFile): Promise<ZipArchive> =>
  openZip(file.name, await byteSource(file, ctx.filesRoot));

function foundMember(ctx: SourceContext, archive: FoundFile, member: ZipMember): FoundFile {
  const name = `${archive.name}/${member.name}`;
  return {
    name,
    path: '',
    size: member.size,
    // The archive is written as a whole; times within it are local and have two seconds.
    modified: archive.modified,
    tag: member.crc32.toString(16),
    remote: {
      has_ranges: false,
      open: async () => ({ gzip: false, bytes: contentOf(ctx, archive, member) }),
      part: () => Promise.reject(new Error(`${name} cannot be read in parts`)),
    },
  };
}

async function* contentOf(ctx: SourceContext, archive: FoundFile, member: ZipMember): AsyncGenerator<Uint8Array> {
  const zip = await opened(ctx, archive);
  try {
    yield* zip.read(member, ctx.signal);
  } finally {
    await zip.close();
  }
}
