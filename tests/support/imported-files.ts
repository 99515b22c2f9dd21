import { readFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { dirname, extname } from 'node:path';

const javascript = new Bun.Transpiler({ loader: 'jsx' });
const TRANSPILERS: Record<string, Bun.Transpiler> = {
  '.ts': new Bun.Transpiler({ loader: 'ts' }),
  '.tsx': new Bun.Transpiler({ loader: 'tsx' }),
  '.js': javascript,
  '.mjs': javascript,
  '.cjs': javascript,
};

/**
 * Files that the runtime may load from these on, by absolute path: what they import or require, in any branch, and what
 * that imports. A bundle lists fewer, since it leaves out modules of which nothing is used.
 */
export function importedFiles(from: string[]): Set<string> {
  const found = new Set(from);
  for (const file of found) for (const next of importsOf(file)) found.add(next);
  return found;
}

function importsOf(file: string): string[] {
  const transpiler = TRANSPILERS[extname(file)];
  if (!transpiler) return [];
  const required = createRequire(file);
  return transpiler.scanImports(readFileSync(file, 'utf8')).flatMap(({ path, kind }) => {
    if (isBuiltin(path) || /^bun(:|$)/.test(path)) return [];
    try {
      return [kind.startsWith('require') ? required.resolve(path) : Bun.resolveSync(path, dirname(file))];
    } catch {
      // A package that is not installed is optional.
      return [];
    }
  });
}
