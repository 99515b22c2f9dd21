/**
 * Ends a child, and removes its folder, however this process ends: the watchdog's standard input closes with it. A
 * stopped child (SIGSTOP) is ended, too. The watchdog ends with the child.
 */
export function watchOver(child: Bun.Subprocess, folder = ''): void {
  // Ending this process must not also end the watchdog.
  const script =
    'trap "" TERM INT HUP; cat > /dev/null; kill -KILL "$0"; while kill -0 "$0" 2>/dev/null; do sleep 0.1; done; [ -z "$1" ] || rm -rf "$1"';
  const watchdog = Bun.spawn(['/bin/sh', '-c', script, String(child.pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watchdog.unref();
  void child.exited.then(() => watchdog.kill('SIGKILL'));
}
