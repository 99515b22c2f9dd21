/** The path below which a proxy serves the service, without a slash at its end. Empty: the service has a host of its own. */
export type BasePath = string;

const FORM = /^(\/[\w.~-]+)+$/;

/**
 * The base path and the public URL with it. Each follows from the other: a path may be given in either or both.
 * @throws Error if they differ, or if the path has other characters than names of folders usually have
 */
export function readAddress(public_url: string, given = ''): { PUBLIC_URL: string; BASE_PATH: BasePath } {
  const { origin, pathname } = new URL(public_url);
  const [inUrl, base] = [pathname, given].map((path) => path.replace(/\/+$/, ''));
  if (base && inUrl && base !== inUrl) throw new Error(`must be the path of PUBLIC_URL, which is ${inUrl}`);
  const BASE_PATH = base || inUrl!;
  const segments = BASE_PATH.split('/');
  if (BASE_PATH && (!FORM.test(BASE_PATH) || segments.includes('.') || segments.includes('..')))
    throw new Error('must be a path such as /pipelines, of letters, digits, ".", "_", "~" and "-"');
  return { PUBLIC_URL: origin + BASE_PATH, BASE_PATH };
}

/** The path of a request as routes know it. Proxies pass the base path on or remove it. */
export function routePath({ BASE_PATH }: { BASE_PATH: BasePath }, url: string): string {
  const { pathname } = new URL(url);
  return BASE_PATH && `${pathname}/`.startsWith(`${BASE_PATH}/`) ? pathname.slice(BASE_PATH.length) || '/' : pathname;
}
