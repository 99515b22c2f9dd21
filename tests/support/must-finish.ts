/**
 * For a script: a process whose event loop runs empty, or that a library ends, exits with 0 and without its result.
 * @returns call it with the exit code once the result is printed. Without that call the exit code is 1.
 */
export function mustFinish(name: string): (code: number) => never {
  let isFinished = false;
  process.on('exit', (code) => {
    if (isFinished) return;
    console.error(`${name} ended before its totals`);
    process.exitCode = code || 1;
  });
  return (code) => {
    isFinished = true;
    process.exit(code);
  };
}
