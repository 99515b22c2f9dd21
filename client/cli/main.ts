import { ExitCode, proposeCompletions, run } from '@stricli/core';
import { app } from './app.ts';
import { COMPLETE } from './completion.ts';
import { createCli } from './context.ts';
import { EXIT } from './exit.ts';

const [first, ...rest] = process.argv.slice(2);
const cli = createCli(process);

/** A reader that has had enough, such as `head`, ends the program without a word. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failed);
});

if (first === COMPLETE) {
  for (const { completion } of await proposeCompletions(app, rest, cli)) cli.say(completion);
} else {
  await run(app, process.argv.slice(2), cli);
  // The library's own codes are negative, which a process cannot be.
  const code = Number(process.exitCode ?? 0) & 0xff;
  const wrongUse = [ExitCode.UnknownCommand, ExitCode.InvalidArgument].map((one) => one & 0xff);
  if (wrongUse.includes(code)) process.exitCode = EXIT.usage;
  else if (code > 0x7f && code !== EXIT.interrupted) process.exitCode = EXIT.failed;
}
