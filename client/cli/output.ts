import type { Cli } from './context.ts';
import { UsageError } from './exit.ts';
import type { Format, Output } from './format.ts';

/** The flags of every command that shows something. */
export interface Shown {
  json: boolean;
  output?: Format;
  jq?: string;
}

/** @throws UsageError for flags that contradict each other. */
export function outputOf({ json, output, jq }: Partial<Shown>): Output {
  if (json && output !== undefined && output !== 'json')
    throw new UsageError('Use either --json or --output, not both');
  if (jq !== undefined && output !== undefined && output !== 'json')
    throw new UsageError('--jq filters JSON: use it without --output');
  return { format: output ?? (json || jq !== undefined ? 'json' : 'table'), jq: jq ?? null };
}

/** Whether the result is printed as data, so that nothing else may be printed beside it. */
export const isData = ({ format }: Output): boolean => format !== 'table' && format !== 'wide';

/** The document in the requested format. @throws UsageError if the jq filter fails. */
export async function textOf(document: unknown, { format, jq }: Output): Promise<string> {
  if (jq !== null) return (await filtered(document, jq)).map(lineOf).join('\n');
  if (format === 'yaml') return (await import('yaml')).stringify(document, { lineWidth: 100 }).trimEnd();
  if (format === 'csv') return csvOf(rowsOf(document));
  if (format === 'name') return rowsOf(document).map(nameOf).join('\n');
  return JSON.stringify(document, null, 2);
}

/** Collecting the results in one list keeps jq from printing those before an error as if they were all. */
async function filtered(document: unknown, filter: string): Promise<unknown[]> {
  const { raw } = await import('jq-wasm');
  try {
    return JSON.parse(await raw(JSON.stringify(document), `[(${filter}\n)]`, ['-c'])) as unknown[];
  } catch (error) {
    throw new UsageError(`--jq: ${reasonOf((error as Error).message)}`);
  } finally {
    // jq sets the exit code of the process as if it were the program. A command that fails sets its own afterwards.
    process.exitCode = 0;
  }
}

const reasonOf = (message: string): string =>
  message
    .replace(/^Failed to execute raw query: /, '')
    .replace(/^jq: error(?: \([^)]*\))?: /, '')
    .split('\n')[0]!;

/** Texts without quotes, as of `jq -r`. */
const lineOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

type Row = Record<string, unknown>;
const rowsOf = (document: unknown): Row[] => (Array.isArray(document) ? document : [document]) as Row[];

/** A run is named by its id. */
function nameOf(row: Row): string {
  const inner = (row.run ?? row) as Row;
  return cellOf(inner.name ?? inner.email ?? inner.id);
}

const quotedCell = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** One column per key; lists and objects are JSON. */
function csvOf(rows: Row[]): string {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return [keys, ...rows.map((row) => keys.map((key) => row[key]))]
    .map((cells) => cells.map((cell) => quotedCell(cellOf(cell))).join(','))
    .join('\n');
}

function cellOf(value: unknown): string {
  if (value == null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Prints what a command left for the end. */
export async function printDocument(cli: Cli): Promise<void> {
  const { document } = cli;
  if (document === undefined) return;
  cli.document = undefined;
  const text = await textOf(document, cli.output);
  if (text !== '') cli.print(text);
}
