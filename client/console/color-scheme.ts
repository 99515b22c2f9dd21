/** QueryView before the first paint, so that nobody who chose dark sees a flash of light. The key is Mantine's own. */
const chosen = localStorage.getItem('mantine-color-scheme-value') ?? 'auto';
const dark = chosen === 'dark' || (chosen === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches);
document.documentElement.dataset.mantineColorScheme = dark ? 'dark' : 'light';
