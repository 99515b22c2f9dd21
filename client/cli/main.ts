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
  const code = Number(process.exitCode ?? 0);
  if (code === ExitCode.UnknownCommand || code === ExitCode.InvalidArgument) process.exitCode = EXIT.usage;
  else if (code < 0) process.exitCode = EXIT.failed;
}
