import type { ApiClient } from '../../api.ts';
import type { Cli } from '../context.ts';
import { CommandError } from '../exit.ts';
import { pickWhole } from '../find.ts';
import { moment, number } from '../style.ts';
import { showList } from '../table.ts';

type AppliedFile = Awaited<ReturnType<ApiClient['automation']['listAppliedFiles']['query']>>[number];

export async function listFiles(cli: Cli, flags: { json: boolean }): Promise<void> {
  showFiles(cli, await (await cli.api()).automation.listAppliedFiles.query({}), flags);
}

/** Compares now, and fails as a dry run does if there are differences. */
export async function compareFiles(cli: Cli, flags: { json: boolean }, wanted?: string): Promise<void> {
  const api = await cli.api();
  const all = await api.automation.listAppliedFiles.query({});
  const chosen = wanted === undefined ? all : [findFile(all, wanted)];
  const compared: AppliedFile[] = [];
  for (const { id } of chosen) compared.push(await api.automation.compareAppliedFile.mutate({ applied_file_id: id }));
  showFiles(cli, compared, flags);
  const found = compared.flatMap(({ differences }) => differences);
  if (found.length === 0) return;
  if (!flags.json) cli.print(['', ...found].join('\n'));
  throw new CommandError('changes', 'The account differs from what was applied');
}

export async function forgetFile(cli: Cli, _flags: object, wanted: string): Promise<void> {
  const api = await cli.api();
  const { id, file } = findFile(await api.automation.listAppliedFiles.query({}), wanted);
  await api.automation.forgetAppliedFile.mutate({ applied_file_id: id });
  cli.print(`No longer compared: ${file}`);
}

const findFile = (all: AppliedFile[], wanted: string) =>
  pickWhole(
    all.map((one) => ({ ...one, name: one.file })),
    wanted,
    'applied file',
  );

const showFiles = (cli: Cli, files: AppliedFile[], { json }: { json: boolean }): void =>
  showList(cli, files, {
    json,
    empty: 'No files are compared yet. Apply one with `apply -f FILE --watch`',
    columns: {
      file: ({ file }) => file,
      owner: ({ owner }) => owner ?? '–',
      items: ({ items }) => number(items),
      differences: ({ differences }) =>
        differences.length === 0 ? cli.style('green', 'none') : cli.style('yellow', number(differences.length)),
      compared: ({ checked_at }) => moment(checked_at),
    },
    wide: { applied: ({ applied_at }) => moment(applied_at), id: ({ id }) => id },
  });
