/** The path below which a proxy serves the service, as its page says. Empty: the service has a host of its own. */
export const BASE_PATH = document.querySelector<HTMLMetaElement>('meta[name="base-path"]')?.content ?? '';
