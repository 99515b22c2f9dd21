#!/usr/bin/env bash
# Starts the files of the image as the image does: as a user without rights, on a read-only root, with /data and /tmp alone
# to write to. Needs root for chroot, and nothing else. Prints the milliseconds until the service was ready.
#   try-image.sh ROOTFS [PORT [SETTING=VALUE...]]            ends the service once it was ready
#   try-image.sh --serve ROOTFS [PORT [SETTING=VALUE...]]    ends it at SIGTERM
set -euo pipefail
main() {
  local rootfs port started serve=''
  if [ "${1:-}" = --serve ]; then serve=1; shift; fi
  rootfs=$(realpath "${1:?the folder that image.sh --rootfs wrote}")
  port=${2:-18743}
  shift $(($# < 2 ? $# : 2))
  started=$(date +%s%N)
  unshare --mount --pid --fork --kill-child=SIGTERM "$(realpath "$0")" --inside "$rootfs" "$port" "$@" &
  pid=$!
  trap end_service TERM
  # Until the process that prints the address has ended, or the service is ready.
  until curl -fsS -m 2 "http://127.0.0.1:$port/readyz" >/dev/null 2>&1; do
    kill -0 "$pid" 2>/dev/null || { echo 'The service ended before it was ready' >&2; exit 1; }
    sleep 0.1
  done
  echo "ready after $((($(date +%s%N) - started) / 1000000)) ms"
  curl -fsS -m 60 -o /dev/null "http://127.0.0.1:$port/"
  # A signal ends the first wait, not the service.
  if [ "$serve" ]; then wait "$pid" || true; else end_service; fi
  wait "$pid"
}

# unshare ignores SIGTERM: the signal is for its child, the service.
end_service() {
  kill -TERM $(cat "/proc/$pid/task/$pid/children")
}

# In a mount namespace of its own, so that nothing stays mounted.
inside() {
  local rootfs=$1 port=$2
  shift 2
  mount --bind "$rootfs" "$rootfs"
  mount --bind /dev "$rootfs/dev"
  mount -t proc proc "$rootfs/proc"
  mount -t tmpfs tmpfs "$rootfs/tmp" -o mode=1777
  mount -t tmpfs tmpfs "$rootfs/data" -o uid=65534,mode=0700
  mount -o remount,ro,bind "$rootfs"
  exec env -i PATH=/usr/bin DATA_DIR=/data HOST=127.0.0.1 PORT="$port" DEMO=0 LOG_LEVEL=warn "$@" \
    "$(command -v chroot)" --userspec=65534:65534 "$rootfs" \
    /usr/bin/sh -c 'cd /app && exec /usr/bin/bun --no-env-file server/main.ts all' >&2
}

if [ "${1:-}" = --inside ]; then inside "${@:2}"; else main "$@"; fi
