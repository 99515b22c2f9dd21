import { closeSync } from 'node:fs';

/** A process for jobs that is ready, cannot be given one, and ends. */
closeSync(0);
console.log('{}');
setTimeout(() => process.exit(3), 100);
