import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { read, router, write } from '../../api/procedure.ts';
import { VerificationSchema, VerifyRequest } from './schema.ts';
import { listVerifications, readVerification, stop, verify } from './service.ts';

export const verificationsRouter = router({
  start: write('connections.run')
    .concat(
      rest('POST', '/connections/{connection_id}/verifications', {
        operation_id: 'verify_connection',
        summary: 'Compare the streams of a connection with their tables; returns the id of the verification',
        description:
          'A worker compares counts and hashes of the rows of both sides by ranges of keys, and finds the keys that ' +
          'differ. One verification of a connection at a time.',
        body: VerifyRequest.nullable(),
        body_key: 'request',
        errors: [400],
        addition: true,
      }),
    )
    .output(z.string())
    .mutation(({ ctx, input }) => verify(ctx, input)),
  list: read
    .concat(
      rest('GET', '/connections/{connection_id}/verifications', {
        operation_id: 'list_verifications',
        summary: 'List the verifications of a connection, newest first',
        description: 'The newest 100.',
        addition: true,
      }),
    )
    .output(z.array(VerificationSchema))
    .query(({ ctx, input }) => listVerifications(ctx, input)),
  get: read
    .concat(
      rest('GET', '/verifications/{verification_id}', {
        operation_id: 'get_verification',
        summary: 'Get a verification',
        description: 'What was compared, when, and the result. Of a verification in progress, the streams so far.',
        addition: true,
      }),
    )
    .output(VerificationSchema)
    .query(({ ctx, input }) => readVerification(ctx, input)),
  stop: write('connections.run')
    .concat(
      rest('POST', '/verifications/{verification_id}/stop', {
        operation_id: 'stop_verification',
        summary: 'Stop a verification; returns null if it has already ended',
        description: 'A worker that compares stops at its next heartbeat.',
        addition: true,
      }),
    )
    .output(z.string().nullable())
    .mutation(({ ctx, input }) => stop(ctx, input)),
});
