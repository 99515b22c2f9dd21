import { afterAll } from 'bun:test';
import { limitHangs } from '../support/hangs.ts';
import { startS3 } from '../support/s3.ts';
import { objectPlace, openUploads, testCommits, testDroppedUpload } from './table-commits.ts';

limitHangs();

const s3 = await startS3();
afterAll(() => s3.close());

const place = (more: object = {}) =>
  objectPlace({ settings: s3.settings, more, keys: (prefix) => s3.keys(prefix), uploads: openUploads(s3) });

testCommits(place, { least: 15 });
testDroppedUpload(place, s3);
