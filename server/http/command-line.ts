import { join } from 'node:path';
import type { Handler } from './edge.ts';

const MAIN = join(import.meta.dir, '../../client/cli/main.ts');
/** A shell reads the second line as a command, and JavaScript as a text before a comment. */
const RUN = `#!/bin/sh
':' //; command -v bun >/dev/null && exec bun "$0" "$@"; command -v node >/dev/null && exec node "$0" "$@"; echo "Install Node 20 or Bun to run $0" >&2; exit 127
`;

let built: Promise<string> | undefined;

/** The command line as one file for Bun or Node, of the version of this service. Built at the first request. */
export const commandLine: Handler = async () => {
  built ??= bundle();
  const text = await built.catch((error: unknown) => {
    built = undefined;
    throw error;
  });
  return new Response(text, {
    headers: {
      'content-type': 'text/javascript; charset=utf-8',
      'content-disposition': 'attachment; filename="data-pipelines"',
    },
  });
};

async function bundle(): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [MAIN],
    target: 'node',
    format: 'cjs',
    minify: { syntax: true, whitespace: true },
  });
  const [file] = outputs;
  if (!file || outputs.length > 1) throw new Error('The command line is not one file');
  return RUN + (await file.text());
}
