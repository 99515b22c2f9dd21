import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Reads folders, one a line, until its standard input closes. What is written to one at that moment is removed again. */
const SCRIPT = `trap "" TERM INT HUP
  while IFS= read -r folder; do set -- "$@" "$folder"; done
  for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$@" && break; sleep 0.5; done`;

let folders: Bun.FileSink | null = null;

/** A folder that is removed once this process has ended, however it ends. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'data-pipelines-bench-'));
  folders ??= startRemover();
  void folders.write(`${folder}\n`);
  void folders.flush();
  return folder;
}

/** In a session of its own: Ctrl-C ends this process alone. */
function startRemover(): Bun.FileSink {
  const remover = Bun.spawn(['/bin/sh', '-c', SCRIPT, 'remover'], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  remover.unref();
  return remover.stdin;
}
