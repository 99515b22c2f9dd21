import { tuneRuntime } from './platform/tune-runtime.ts';

tuneRuntime();
const { runService } = await import('./process/main.ts');
await runService(process.argv.slice(2));
