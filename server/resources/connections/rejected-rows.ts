import type { AnyDestination } from '../../connectors/contract/connector.ts';
import { badRequest } from '../../platform/errors.ts';
import type { UpdateConnectionRequest } from './schema.ts';

/** @throws ApiError 400 `rejected_rows_unsupported` when the destination cannot store rejected rows. */
export function refuseUnkeptRejects(
  { rejected_rows_policy }: Pick<UpdateConnectionRequest, 'rejected_rows_policy'>,
  destination: AnyDestination,
): void {
  if (rejected_rows_policy !== 'keep' || destination.keeps_rejects) return;
  throw badRequest('rejected_rows_unsupported', `${destination.name} does not support keeping rejected rows`, {
    field: 'rejected_rows_policy',
  });
}
