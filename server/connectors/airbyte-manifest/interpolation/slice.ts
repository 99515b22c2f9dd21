import { TemplateError } from './template-error.ts';

interface Slice {
  start: number | null;
  stop: number | null;
  step: number;
}

/** `items[start:stop:step]` as in Python. @throws TemplateError for a step of 0 and for fractions */
export function sliced<Item>(items: readonly Item[], { start, stop, step }: Slice): Item[] {
  if (step === 0) throw new TemplateError('the step of a slice cannot be 0');
  if (![start ?? 0, stop ?? 0, step].every(Number.isInteger)) {
    throw new TemplateError('the bounds of a slice must be whole numbers');
  }
  // Downwards, -1 is the place before the first item.
  const [lowest, highest] = step > 0 ? [0, items.length] : [-1, items.length - 1];
  const within = (bound: number) => Math.min(highest, Math.max(lowest, bound < 0 ? bound + items.length : bound));
  const end = stop === null ? (step > 0 ? highest : lowest) : within(stop);
  const taken: Item[] = [];
  let at = start === null ? (step > 0 ? lowest : highest) : within(start);
  for (; step > 0 ? at < end : at > end; at += step) taken.push(items[at] as Item);
  return taken;
}
