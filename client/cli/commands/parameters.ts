import type { TypedFlagParameter } from '@stricli/core';
import type { Cli } from '../context.ts';
import { exitCodeOf } from '../exit.ts';
import { isData, outputOf, printDocument, type Shown } from '../output.ts';
import { FORMATS } from '../format.ts';

// oxlint-disable-next-line typescript/no-generated-empty-object-type -- the type of a command without flags
export type NoFlags = Record<never, never>;

/**
 * stricli passes its context as `this`; our actions take it as their first argument. `json` is true in every format that
 * is data. The result is printed at the end, also of a command that fails after it.
 */
export const withCli = <Flags extends object, Args extends unknown[]>(
  work: (cli: Cli, flags: Flags, ...args: Args) => void | Promise<void>,
) =>
  async function (this: Cli, flags: Flags, ...args: Args): Promise<void> {
    const shown = flags as Partial<Shown>;
    this.output = outputOf(shown);
    try {
      const given = shown.json === undefined ? flags : { ...flags, json: isData(this.output) };
      await withDocument(this, () => work(this, given, ...args));
    } catch (error) {
      // jq sets an exit code of its own, which stricli would keep.
      this.process.exitCode = exitCodeOf(error);
      throw error;
    }
  };

async function withDocument(cli: Cli, work: () => void | Promise<void>): Promise<void> {
  try {
    await work();
  } finally {
    await printDocument(cli);
  }
}

/** Texts of `--help`: a line, further explanation, and commands to start from. */
export const help = (brief: string, { about, examples }: { about?: string; examples: string[] }) => ({
  brief,
  fullDescription: [
    brief,
    ...(about ? [about] : []),
    '',
    'EXAMPLES',
    ...examples.map((example) => `  data-pipelines ${example}`),
  ].join('\n'),
});

const text = (value: string) => value;

export const textFlag = (brief: string, placeholder = 'text') =>
  ({ kind: 'parsed', parse: text, brief, placeholder, optional: true }) as const;

export const textsFlag = (brief: string, placeholder = 'text') =>
  ({ kind: 'parsed', parse: text, brief, placeholder, optional: true, variadic: true }) as const;

export const countFlag = (brief: string, placeholder = 'number') =>
  ({ kind: 'parsed', parse: wholeNumber, brief, placeholder, optional: true }) as const;

export const switchFlag = (brief: string) => ({ kind: 'boolean', brief, default: false, withNegated: false }) as const;

export const json = switchFlag('Print the response as JSON') satisfies TypedFlagParameter<boolean>;
export const yes = switchFlag('Skip the confirmation') satisfies TypedFlagParameter<boolean>;

/** How a command shows its result. */
export const shown = {
  json,
  output: {
    kind: 'enum',
    values: FORMATS,
    brief: 'Format: more columns, data, or names alone; default a table',
    optional: true,
  },
  jq: textFlag('Filter the JSON response by a jq expression', 'expression'),
} as const;
export const shownAliases = { o: 'output' } as const;

export type Propose = (cli: Cli) => readonly string[] | Promise<readonly string[]>;
const PROPOSALS_WITHIN_MS = 2000;

/** Values that the shell proposes. Without an answer in time it proposes file names. */
export const proposing = (propose: Propose) => ({
  async proposeCompletions(this: Cli, partial: string): Promise<readonly string[]> {
    const late = new Promise<string[]>((resolve) => setTimeout(resolve, PROPOSALS_WITHIN_MS, []).unref());
    const all = await Promise.race([Promise.resolve(propose(this)).catch(() => []), late]).catch(() => []);
    return all.filter((one) => one.startsWith(partial));
  },
});

export const one = (placeholder: string, brief: string, propose: Propose = () => []) =>
  ({ kind: 'tuple', parameters: [{ placeholder, brief, parse: text, ...proposing(propose) }] }) as const;

export const oneOrNone = (placeholder: string, brief: string, propose: Propose = () => []) =>
  ({
    kind: 'tuple',
    parameters: [{ placeholder, brief, parse: text, optional: true, ...proposing(propose) }],
  }) as const;

const namesOf = (things: { name: string }[]) => things.map(({ name }) => name);

/** Names in the account, for completion. */
export const connectionNames: Propose = async (cli) => namesOf(await (await cli.api()).connections.summaries.query());
export const folderPaths: Propose = async (cli) => {
  const all = await (await cli.api()).connections.summaries.query();
  return [...new Set(all.flatMap(({ folder }) => folder ?? []))].toSorted();
};
export const connectorNames: Propose = async (cli) => namesOf(await (await cli.api()).connectors.list.query());
export const viewNames: Propose = async (cli) => namesOf(await (await cli.api()).saved_views.list.query({}));
export const triggerNames: Propose = async (cli) => namesOf(await (await cli.api()).automation.listTriggers.query({}));
export const userEmails: Propose = async (cli) =>
  (await (await cli.api()).users.list.query()).map(({ email }) => email);
export const keyPrefixes: Propose = async (cli) =>
  (await (await cli.api()).users.listKeys.query({})).map(({ prefix }) => prefix);
export const accountConnectorNames =
  (connector_type: 'source' | 'destination'): Propose =>
  async (cli) =>
    namesOf(await (await cli.api()).account_connectors.list.query({ connector_type }));

export const RUN = 'Run id, CONNECTION#NUMBER, or CONNECTION for its latest run';
const CONNECTION = 'Connection name, unique prefix of the name, or id';
export const oneConnection = one('connection', CONNECTION, connectionNames);
export const oneRun = one('run', RUN, connectionNames);
/** For what cannot be undone: a prefix is not enough. */
export const WHOLE = 'The whole name, or the id';

function wholeNumber(value: string): number {
  if (!/^\d+$/.test(value)) throw new SyntaxError(`"${value}" is not a whole number`);
  return Number(value);
}
