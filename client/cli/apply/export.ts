import { stringify } from 'yaml';
import type { Cli } from '../context.ts';
import { saveFile } from '../save-file.ts';
import {
  connectionBody,
  connectorBody,
  parameterDefaults,
  triggerBody,
  withoutEmpty,
} from '../../pipeline-file/bodies.ts';
import type { Body } from '../../pipeline-file/keys.ts';
import { readCurrent } from './current.ts';

/** Writes a file in which `apply`, given the secrets, finds nothing to change. */
export async function exportPipelines(
  cli: Cli,
  flags: { output?: string; users: boolean; owner?: string },
): Promise<void> {
  const api = await cli.api();
  const [current, connectors] = await Promise.all([
    readCurrent(api, { withPeople: flags.users }),
    api.connectors.list.query(),
  ]);
  const nameOf = (id: unknown) =>
    [...current.destinations, ...current.sources, ...current.connections].find((one) => one.id === id)?.name;
  const { owner } = flags;
  const owned = <Thing extends { owner: string | null }>(things: Thing[]) =>
    things.filter((one) => owner === undefined || one.owner === owner);
  const document = {
    version: 1,
    ...(owner !== undefined && { owner }),
    ...(flags.users && {
      roles: named(current.roles, ({ permissions, description }) => withoutEmpty({ permissions, description })),
      users: named(current.users, ({ full_name, roles }) => ({ full_name, roles })),
    }),
    sources: named(owned(current.sources), (source) => connectorBody(source, parameterDefaults(source, connectors))),
    destinations: named(owned(current.destinations), (destination) =>
      connectorBody(destination, parameterDefaults(destination, connectors)),
    ),
    connections: named(owned(current.connections), (connection) => connectionBody(connection)),
    triggers: named(owned(current.triggers), (trigger) => triggerBody(trigger, nameOf)),
  };
  const text = stringify(document, { lineWidth: 100 });
  if (flags.output === undefined) return cli.print(text.trimEnd());
  saveFile(flags.output, text);
  const secrets = [...new Set([...text.matchAll(/(?<!\$)\$\{(\w+)\}/g)].map(([, name]) => name))];
  cli.print(`Saved ${flags.output}${secrets.length > 0 ? `. Before \`apply\`, set ${secrets.join(', ')}` : ''}`);
}

const named = <Thing extends { name: string }>(things: Thing[], body: (thing: Thing) => Body) =>
  Object.fromEntries(things.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map((thing) => [thing.name, body(thing)]));
