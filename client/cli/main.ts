import { ExitCode, proposeCompletions, run } from '@stricli/core';
import { app } from './app.ts';
import { COMPLETE } from './completion.ts';
import { createCli } from './context.ts';
import { describeFailure, EXIT, exitCodeOf } from './exit.ts';
import { OPTION, proposesContext, takeContext, unquoted } from './global-options.ts';
import { selectContext } from './settings.ts';

/** A closed pipe, as `head` leaves it, is not an error. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failed);
});

const cli = createCli(process);
// As one file for Node it is no module, which could wait for it.
void start(process.argv.slice(2)).catch((error: unknown) => {
  cli.note(describeFailure(error));
  process.exitCode = exitCodeOf(error);
});

async function start(given: string[]): Promise<void> {
  const isCompletion = given[0] === COMPLETE;
  const { words, context } = takeContext(isCompletion ? given.slice(1).map(unquoted) : given);
  if (context !== null) selectContext(context);
  if (isCompletion) {
    for (const { completion } of await proposeCompletions(app, words, cli)) cli.print(completion);
    if (proposesContext(words.at(-1))) cli.print(OPTION);
    return;
  }
  await run(app, words, cli);
  // stricli's own codes are negative; the operating system sees only their low byte.
  const code = Number(process.exitCode ?? 0) & 0xff;
  const wrongUse = [ExitCode.UnknownCommand, ExitCode.InvalidArgument].map((one) => one & 0xff);
  // Of `apply`, 2 may mean changes.
  if (wrongUse.includes(code)) process.exitCode = words[0] === 'apply' ? EXIT.failed : EXIT.usage;
  else if (code > 0x7f && code !== EXIT.interrupted) process.exitCode = EXIT.failed;
}
