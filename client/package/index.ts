export { ApiError, isApiError } from '../api-error.ts';
export { createApiClient } from '../api.ts';
export { verifyWebhook } from './webhook.ts';
