import { environmentOf } from '../../server/platform/config.ts';
import { openLog } from '../../server/platform/log.ts';
import { superviseWorker } from '../../server/process/supervise.ts';
import { testConfig } from './database.ts';

// A separate process that supervises a worker and prints the worker's process ID. Tests kill it.
const [url = '', dataDir = ''] = process.argv.slice(2);
const worker = superviseWorker({ env: environmentOf(testConfig(dataDir), url), log: openLog('silent') });
process.stdout.write(`${worker.pid()}\n`);
