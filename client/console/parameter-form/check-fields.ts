import { flushSync } from 'react-dom';

/** Runs all checks, so that every error is shown at once. If there are any, the first invalid field gets the focus. */
export function checkFields(form: HTMLFormElement, checks: (() => boolean)[]): boolean {
  const isValid = flushSync(() => checks.map((check) => check()).every(Boolean));
  if (isValid) return true;
  const field = form.querySelector<HTMLElement>('[aria-invalid="true"]');
  field?.closest('details')?.setAttribute('open', '');
  field?.focus();
  return false;
}
