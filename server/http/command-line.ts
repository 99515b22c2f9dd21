import { join } from 'node:path';
import type { Handler } from './edge.ts';

const MAIN = join(import.meta.dir, '../../client/cli/main.ts');
const SHEBANG = '#!/usr/bin/env bun\n';

let built: Promise<string> | undefined;

/** The command line as one file for Bun, of the version of this service. Built at the first request. */
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
    target: 'bun',
    minify: { syntax: true, whitespace: true },
  });
  const [file] = outputs;
  if (!file || outputs.length > 1) throw new Error('The command line is not one file');
  // The file begins with a mark of Bun, which belongs behind the first line.
  return SHEBANG + (await file.text());
}
