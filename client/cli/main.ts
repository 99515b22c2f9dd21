import { ExitCode, proposeCompletions, run } from '@stricli/core';
import { app } from './app.ts';
import { COMPLETE } from './completion.ts';
import { createCli } from './context.ts';
import { EXIT } from './exit.ts';

const [first, ...rest] = process.argv.slice(2);
const cli = createCli(process);

/** A closed pipe, as `head` leaves it, is not an error. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failed);
});

if (first === COMPLETE) {
  for (const { completion } of await proposeCompletions(app, rest, cli)) cli.print(completion);
} else {
  await run(app, process.argv.slice(2), cli);
  // stricli's own codes are negative; the operating system sees only their low byte.
  const code = Number(process.exitCode ?? 0) & 0xff;
  const wrongUse = [ExitCode.UnknownCommand, ExitCode.InvalidArgument].map((one) => one & 0xff);
  if (wrongUse.includes(code)) process.exitCode = EXIT.usage;
  else if (code > 0x7f && code !== EXIT.interrupted) process.exitCode = EXIT.failed;
}
