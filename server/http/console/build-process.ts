import { serialize } from 'bun:jsc';
import { buildConsole } from './build.ts';

// Writes the bundle to standard output.
await Bun.write(Bun.stdout, serialize(await buildConsole()));
