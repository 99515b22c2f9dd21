import type { Page } from 'playwright-core';

/** A text on the page: its color and what is painted behind it, nearest first, each with the opacity that applies. */
export interface Text {
  html: string;
  color: string;
  behind: { color: string; opacity: number }[];
  opacity: number;
  pixels: number;
  weight: number;
}

type Color = [red: number, green: number, blue: number, alpha: number];

/** WCAG 1.4.3: large text may be fainter. */
const MIN_RATIO = 4.5;
const MIN_RATIO_LARGE = 3;
const LARGE_PIXELS = 24;
const LARGE_BOLD_PIXELS = 18.66;

/**
 * Runs in the page. One text for each combination of colors and size: visible, not of a disabled control, and not over
 * an image. Asking for styles is what costs, so each element is asked once.
 */
const COLLECT = `(() => {
  const styles = new Map();
  const styleOf = (element) => {
    if (!styles.has(element)) {
      const style = getComputedStyle(element);
      styles.set(element, {
        background: style.backgroundColor, image: style.backgroundImage !== 'none', opacity: Number(style.opacity),
      });
    }
    return styles.get(element);
  };
  const DISABLED = ':disabled, [aria-disabled=true], [data-disabled=true]';
  const isDisabled = (element) => element.closest(DISABLED) !== null || element.closest('label')?.control?.matches(DISABLED);
  const hasText = (element) => element.matches('input:not([type=hidden], [type=checkbox], [type=radio], [type=file]), textarea')
    ? element.value !== '' : [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '');
  const isVisible = (element) => {
    const { width, height } = element.getBoundingClientRect();
    return width > 1 && height > 1 && element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  };
  const texts = new Map();
  for (const element of document.querySelectorAll('body, body *')) {
    if (element.matches('script, noscript, style, option') || !hasText(element)) continue;
    if (!isVisible(element) || isDisabled(element)) continue;
    const { color, fontSize, fontWeight } = getComputedStyle(element);
    const chain = [];
    for (let at = element; at; at = at.parentElement) chain.push(styleOf(at));
    if (chain.some(({ image }) => image)) continue;
    let opacity = chain.reduce((product, one) => product * one.opacity, 1);
    const text = { color, opacity, pixels: Number.parseFloat(fontSize), weight: Number(fontWeight), behind: [] };
    for (const one of chain) {
      if (one.background !== 'rgba(0, 0, 0, 0)') text.behind.push({ color: one.background, opacity });
      opacity /= one.opacity;
    }
    const key = JSON.stringify(text);
    if (!texts.has(key)) texts.set(key, { ...text, html: element.outerHTML.slice(0, 160) });
  }
  return [...texts.values()];
})()`;

/** Texts of the page, in the color scheme that it shows now, that are too faint. */
export async function faintTexts(page: Page): Promise<string[]> {
  return faintOf(await page.evaluate<Text[]>(COLLECT));
}

export const faintOf = (texts: Text[]): string[] =>
  texts.flatMap((text) => {
    const isLarge = text.pixels >= (text.weight >= 700 ? LARGE_BOLD_PIXELS : LARGE_PIXELS);
    const ratio = ratioOf(text);
    return ratio < (isLarge ? MIN_RATIO_LARGE : MIN_RATIO) ? [`contrast ${ratio.toFixed(2)}: ${text.html}`] : [];
  });

function ratioOf({ color, opacity, behind }: Text): number {
  const white: Color = [255, 255, 255, 1];
  const background = behind.reduceRight((under, one) => blend(parse(one.color, one.opacity), under), white);
  const [light, dark] = [luminance(blend(parse(color, opacity), background)), luminance(background)].toSorted(
    (a, b) => b - a,
  ) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

/** The forms that browsers give computed colors: `rgb(…)`, `rgba(…)`, and `color(srgb …)` after a `color-mix`. */
function parse(text: string, opacity: number): Color {
  const form = /^(?:rgba?|color)\((srgb )?([^)]*)\)$/.exec(text);
  const numbers = form?.[2]?.split(/[\s,/]+/).map(Number) ?? [];
  if (numbers.length < 3 || numbers.some(Number.isNaN)) throw new Error(`The color ${text} has an unknown form`);
  const [red, green, blue] = numbers.map((value) => (form?.[1] ? value * 255 : value)) as [number, number, number];
  return [red, green, blue, (numbers[3] ?? 1) * opacity];
}

function blend([red, green, blue, alpha]: Color, under: Color): Color {
  const mix = (over: number, below: number) => over * alpha + below * (1 - alpha);
  return [mix(red, under[0]), mix(green, under[1]), mix(blue, under[2]), 1];
}

function luminance([red, green, blue]: Color): number {
  const linear = (value: number) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}
