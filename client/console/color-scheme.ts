/** Runs before the first paint, so that dark mode does not flash light. The storage key is Mantine's own. */
const scheme = localStorage.getItem('mantine-color-scheme-value') ?? 'auto';
const isDark = scheme === 'dark' || (scheme === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches);
document.documentElement.dataset.mantineColorScheme = isDark ? 'dark' : 'light';
