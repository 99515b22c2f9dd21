import { UsageError } from './exit.ts';

export const OPTION = '--context';

/** Takes `--context NAME`, which every command understands, out of the words of the command. */
export function takeContext(words: readonly string[]): { words: string[]; context: string | null } {
  const rest: string[] = [];
  let context: string | null = null;
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (word === '--') return { words: [...rest, ...words.slice(at)], context };
    if (word.startsWith(`${OPTION}=`)) context = word.slice(OPTION.length + 1);
    else if (word !== OPTION) rest.push(word);
    else {
      const name = words[++at];
      if (name === undefined) throw new UsageError(`${OPTION} needs the name of a context`);
      context = name;
    }
  }
  return { words: rest, context };
}

/** Whether an incomplete word of a command can become the option. */
export const proposesContext = (word = ''): boolean => word.startsWith('--') && OPTION.startsWith(word);

/** A word as the shell would pass it to a command: completion sees it as typed. */
export const unquoted = (word: string): string =>
  word.startsWith("'") || word.startsWith('"') ? word.slice(1).replace(/['"]$/, '') : word.replaceAll(/\\(.)/g, '$1');
