import { UsageError } from './exit.ts';

/** `-` reads standard input. @throws UsageError if the file does not exist. */
export async function readText(path: string): Promise<string> {
  if (path === '-') return new Response(Bun.stdin.stream()).text();
  const file = Bun.file(path);
  if (!(await file.exists())) throw new UsageError(`File not found: ${path}`);
  return file.text();
}

/** Reads YAML or JSON. @throws UsageError with line and column. */
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
