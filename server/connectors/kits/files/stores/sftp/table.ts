import { join } from 'node:path';
import { ConfigurationError } from '../../../../contract/errors.ts';
import type { DestinationContext } from '../../settings/files.ts';
import type { CheckStep } from '../check-steps.ts';
import { FolderTable } from '../folder-table.ts';
import type { DestinationStore } from '../store.ts';
import { tablePaths } from '../table-paths.ts';
import { loginStep, pool } from './sessions.ts';
import { ensureFolder, sftpFolders } from './writer.ts';

export const sftpDestinationStore: DestinationStore = {
  checkSteps: folderSteps,
  async open(ctx, target) {
    refuseEscapes(ctx.config.path);
    const { table, states } = tablePaths(ctx.config.path, target);
    await pool.use(ctx, async (session) => {
      await ensureFolder(session, table);
      await ensureFolder(session, states);
    });
    // Programs that watch the folder of a table list all names: unfinished files stay out of it.
    return FolderTable.open(sftpFolders(ctx, ctx.filesRoot), { table, states, drafts: states }, target);
  },
};

/** A run creates folders and files, renames and removes files. */
function folderSteps(ctx: DestinationContext): CheckStep[] {
  const files = sftpFolders(ctx, ctx.filesRoot);
  const folder = `${ctx.config.path}/_pipeline_state`;
  const [first, second] = ['a', 'b'].map((end) => join(folder, `.check-${crypto.randomUUID()}-${end}`)) as [
    string,
    string,
  ];
  const write = async () => {
    refuseEscapes(ctx.config.path);
    await pool.use(ctx, (session) => ensureFolder(session, folder));
    await files.write(first, 'check');
  };
  const rename = async () => {
    await files.claimName(first, second);
    await files.write(first, 'check');
    if (!(await files.claimName(first, second))) return;
    await files.remove(second);
    throw new ConfigurationError(
      'rename_replaces',
      'The server replaces an existing file on a rename, which the protocol forbids. Two attempts could both commit',
    );
  };
  const remove = async () => {
    await files.remove(first);
    await files.remove(second);
  };
  return [
    loginStep(ctx),
    ['Write', 'A file can be written', write],
    ['Rename', 'A file can be renamed, and replaces none', rename],
    ['Delete', 'A file can be deleted', remove],
  ];
}

function refuseEscapes(path: string): void {
  if (!path.split('/').includes('..')) return;
  throw new ConfigurationError('path_invalid', `The path "${path}" contains "..". Enter the path without it`);
}
