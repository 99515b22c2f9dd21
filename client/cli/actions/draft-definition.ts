import { stringify } from 'yaml';
import { tooLongToDraft } from '../../openapi-document.ts';
import type { Cli } from '../context.ts';
import { CommandError } from '../exit.ts';
import { readText } from '../read-document.ts';
import { showThing } from '../table.ts';

/** Prints a file of parameters, as `sources preview --file` and `sources create --file` read it. */
export async function draftDefinition(cli: Cli, flags: { openapi: string; json: boolean }): Promise<void> {
  const openapi = await readText(flags.openapi);
  const problem = tooLongToDraft(openapi.length);
  if (problem !== null) throw new CommandError('failed', problem);
  const api = await cli.api();
  const draft = await api.account_connectors.draftDefinition.mutate({ openapi });
  if (flags.json) return showThing(cli, draft, { json: true, lines: {} });
  const { definition, config, secrets, streams, left_out } = draft;
  const parameters = {
    definition,
    ...(config.length > 0 && { config: withoutValues(config) }),
    ...(secrets.length > 0 && { secrets: withoutValues(secrets) }),
  };
  cli.print(stringify(parameters, { lineWidth: 0 }).trimEnd());
  cli.note(`Streams: ${streams.length}. Confirm the comments in the definition, and enter the values.`);
  for (const { path, reason } of left_out) cli.note(`No stream for ${path}: ${reason}`);
}

const withoutValues = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, '']));
