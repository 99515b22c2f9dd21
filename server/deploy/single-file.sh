#!/usr/bin/env bash
# Builds one executable that holds the runtime, the service, the console and the command line, for this platform.
#   single-file.sh [FILE]     default .data/dist/data-pipelines
set -euo pipefail
main() {
  local here root to version
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  root=$(cd "$here/../.." && pwd)
  to=$(realpath -m "${1:-$root/.data/dist/data-pipelines}")
  # Not local: the trap runs after the function.
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  "$here/image.sh" --app "$work/app"
  tar -C "$work/app" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf "$work/app.tar" .
  version=$(sha256sum "$work/app.tar" | cut -c 1-16)
  bun -e '
    const { readable, writable } = new CompressionStream("zstd");
    const [from, to] = process.argv.slice(1);
    await Promise.all([Bun.file(from).stream().pipeTo(writable), Bun.write(to, new Response(readable))]);
  ' "$work/app.tar" "$work/app.tar.zst"
  cat >"$work/entry.ts" <<END
import { launch } from '$here/launcher.ts';
import archive from './app.tar.zst' with { type: 'file' };
await launch(archive, '$version');
END
  mkdir -p "$(dirname "$to")"
  (cd "$work" && bun build entry.ts --compile --no-compile-autoload-dotenv --no-compile-autoload-bunfig --outfile "$to" >/dev/null)
  ls -l "$to"
}

main "$@"
