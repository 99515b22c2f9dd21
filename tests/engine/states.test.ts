import { describe, expect, test } from 'bun:test';
import { backoffSeconds, finalRunStatus } from '../../server/pipeline/run-states.ts';

describe('the final state of a run', () => {
  test.each([
    [['succeeded', 'succeeded'], false, 'succeeded'],
    [['succeeded', 'skipped'], false, 'succeeded'],
    [['succeeded', 'failed'], false, 'partially_succeeded'],
    [['failed', 'failed'], false, 'failed'],
    [['failed', 'skipped'], false, 'failed'],
    [['stopped', 'stopped'], true, 'stopped'],
    [['succeeded', 'stopped'], true, 'stopped'],
    [['failed', 'stopped'], true, 'stopped'],
    // The stop came too late: all work was done.
    [['succeeded', 'succeeded'], true, 'succeeded'],
  ] as const)('%p with a stop requested %p is %p', (streams, stopRequested, expected) => {
    expect(finalRunStatus([...streams], stopRequested)).toBe(expected);
  });
});

describe('the delay between attempts', () => {
  test('triples with each attempt without progress, up to 30 minutes', () => {
    expect([1, 2, 3, 4, 5, 9].map((n) => backoffSeconds(n, 10))).toEqual([10, 30, 90, 270, 810, 1800]);
  });
});
