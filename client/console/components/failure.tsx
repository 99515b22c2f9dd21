import { Alert, Button } from '@mantine/core';
import { isApiError } from '../../api.ts';
import { ServiceError } from '../session.ts';
import { CopyButton } from './copy-button.tsx';
import { Icon } from './icon.tsx';

/** An error with its code and request id, which operators need to find it in the log. */
export function Failure({ error, title, retry }: { error: unknown; title?: string; retry?: () => void }) {
  const { message, code, request_id } = describe(error);
  return (
    <Alert
      color="red"
      icon={<Icon name="alert" />}
      title={title ?? 'Something went wrong'}
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
            {' · '}Request <code>{request_id}</code>
          </>
        )}
      </p>
      <div className="row">
        {retry && (
          <Button size="xs" variant="default" onClick={retry}>
            Retry
          </Button>
        )}
        <CopyButton label="Copy error" text={textOf({ message, code, request_id })} />
      </div>
    </Alert>
  );
}

const textOf = ({ message, code, request_id }: ReturnType<typeof describe>): string =>
  [message, code && `code ${code}`, request_id && `request ${request_id}`, location.href].filter(Boolean).join('\n');

export function describe(error: unknown): { message: string; code: string | null; request_id: string | null } {
  if (isApiError(error) || error instanceof ServiceError) {
    const message = error.code === 'network_error' ? 'Can’t reach the service' : error.message;
    return { message, code: error.code, request_id: error.request_id };
  }
  if (error instanceof Error) return { message: error.message, code: null, request_id: null };
  // Of a background task.
  const { message = String(error), code = null } = (error ?? {}) as { message?: string; code?: string | null };
  return { message, code, request_id: null };
}
