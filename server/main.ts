import { runService } from './process/main.ts';

await runService(process.argv.slice(2));
