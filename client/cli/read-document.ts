import { UsageError } from './exit.ts';

/** A file's text; `-` is standard input. @throws UsageError. */
export async function readText(path: string): Promise<string> {
  if (path === '-') return new Response(Bun.stdin.stream()).text();
  const file = Bun.file(path);
  if (!(await file.exists())) throw new UsageError(`There is no file ${path}`);
  return file.text();
}

/** YAML, and so JSON as well. @throws UsageError with line and column. */
export async function readDocument(path: string): Promise<unknown> {
  const { parse, YAMLParseError } = await import('yaml');
  try {
    return parse(await readText(path));
  } catch (error) {
    if (!(error instanceof YAMLParseError)) throw error;
    const at = error.linePos?.[0];
    throw new UsageError(`${path}:${at?.line ?? 1}:${at?.col ?? 1}: ${error.message.split('\n')[0]}`);
  }
}
