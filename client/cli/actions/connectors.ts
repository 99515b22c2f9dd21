import type { ApiClient } from '../../api.ts';
import type { Cli } from '../context.ts';
import { pick } from '../find.ts';
import { showList, table } from '../table.ts';

export type Connector = Awaited<ReturnType<ApiClient['connectors']['list']['query']>>[number];
export type Parameter = Connector['parameters'][number];

export async function connectors(
  cli: Cli,
  flags: { json: boolean; type?: 'source' | 'destination' },
  wanted?: string,
): Promise<void> {
  const all = await (await cli.api()).connectors.list.query();
  const shown = all.filter(({ connector_type }) => !flags.type || connector_type === flags.type);
  if (wanted === undefined) {
    return showList(cli, shown, {
      json: flags.json,
      empty: 'No connectors match',
      columns: {
        type: ({ connector_type }) => connector_type,
        name: ({ name }) => name,
        description: ({ description }) => description,
      },
      wide: { 'display name': ({ display_name }) => display_name, category: ({ category }) => category },
    });
  }
  const { name } = pick(shown, wanted, 'connector');
  const named = shown.filter((connector) => connector.name === name);
  if (flags.json) {
    cli.document = named;
    return;
  }
  for (const connector of named) describe(cli, connector);
}

function describe(cli: Cli, connector: Connector): void {
  cli.print(
    `${cli.style('bold', `${connector.display_name} (${connector.connector_type})`)}  ${connector.description}`,
  );
  const columns = {
    parameter: ({ name }: Parameter) => name,
    type: ({ type, secret }: Parameter) => (secret ? `${type}, secret` : type),
    required: ({ required }: Parameter) => (required ? 'yes' : ''),
    default: (parameter: Parameter) => (parameter.default == null ? '' : JSON.stringify(parameter.default)),
    description: ({ label, description }: Parameter) => (description ? `${label}. ${description}` : label),
  };
  cli.print(`${table(cli, connector.parameters, { columns })}\n`);
}
