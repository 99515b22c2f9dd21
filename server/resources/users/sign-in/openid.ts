/** Loaded with the first sign-in by a provider. Most services have none. */
export const openid = () => require('openid-client') as typeof import('openid-client');
