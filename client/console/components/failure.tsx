import { Alert, Button } from '@mantine/core';
import { isApiError } from '../../api.ts';
import { ServiceError } from '../session.ts';
import { Icon } from './icon.tsx';

/** What went wrong, in the service's words, with the code and the request id that its operator asks for. */
export function Failure({ error, title, retry }: { error: unknown; title?: string; retry?: () => void }) {
  const { message, code, request_id } = describe(error);
  return (
    <Alert
      color="red"
      icon={<Icon name="alert" />}
      title={title ?? 'That did not work'}
      role="alert"
      className="failure"
    >
      <p>{message}</p>
      <p className="failure-codes">
        {code !== null && (
          <>
            Code <code>{code}</code>
          </>
        )}
        {request_id !== null && (
          <>
            {' · '}request <code>{request_id}</code>
          </>
        )}
      </p>
      {retry && (
        <Button size="xs" variant="default" onClick={retry}>
          Try again
        </Button>
      )}
    </Alert>
  );
}

export function describe(error: unknown): { message: string; code: string | null; request_id: string | null } {
  if (isApiError(error) || error instanceof ServiceError) {
    const message = error.code === 'network_error' ? 'The service cannot be reached' : error.message;
    return { message, code: error.code, request_id: error.request_id };
  }
  return { message: error instanceof Error ? error.message : String(error), code: null, request_id: null };
}
