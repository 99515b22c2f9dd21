/**
 * Ends a child, and removes its folder, however this process ends: the watchdog's standard input closes with it. A
 * stopped child (SIGSTOP) is ended, too, unless `signal` lets it end its own children. The watchdog ends with the child.
 */
export function watchOver(child: Bun.Subprocess, folder = '', signal: 'KILL' | 'TERM' = 'KILL'): void {
  // Ending this process must not also end the watchdog.
  const script =
    'trap "" TERM INT HUP; cat > /dev/null; kill -s "$2" "$0"; while kill -0 "$0" 2>/dev/null; do sleep 0.1; done; [ -z "$1" ] || rm -rf "$1"';
  const watchdog = Bun.spawn(['/bin/sh', '-c', script, String(child.pid), folder, signal], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watchdog.unref();
  void child.exited.then(() => watchdog.kill('SIGKILL'));
}
